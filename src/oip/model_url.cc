#include <fmt/format.h>

#include <string_view>

#include "http/server_url.h"
#include "oip/client.h"

namespace weir::oip {
namespace {

constexpr std::string_view kGrpc = "grpc://";

std::unexpected<Error> Wrong(std::string_view url, std::string_view fault) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", url, fault));
}

// The scheme with its "://", or nothing.
std::string_view SchemeOf(std::string_view url) {
  const size_t end = url.find("://");
  return end == std::string_view::npos ? "" : url.substr(0, end + 3);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// "%20" and the like to bytes.
Result<std::string> Decode(std::string_view url, std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) return Wrong(url, "a % is not followed by two hexadecimal digits");
    decoded += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return decoded;
}

}  // namespace

bool IsModelUrl(const std::string& text) { return !SchemeOf(text).empty(); }

Result<ModelUrl> ParseModelUrl(const std::string& text) {
  const std::string_view scheme = SchemeOf(text);
  const size_t slash = text.find('/', scheme.size());
  TRY_STATUS(http::ParseServerUrl(text.substr(0, slash)));
  std::string_view path = slash == std::string::npos ? "" : std::string_view(text).substr(slash + 1);
  if (path.find_first_of("?#") != std::string_view::npos)
    return Wrong(text, "a model's URL ends with its name");
  if (path.ends_with('/')) path.remove_suffix(1);
  constexpr std::string_view kVersions = "/versions/";
  const size_t versions = path.find(kVersions);
  const std::string_view name = path.substr(0, versions);
  if (name.empty()) return Wrong(text, "names no model: give HOST:PORT/NAME");
  if (name.contains('/')) return Wrong(text, "after the model's name may only come /versions/V");

  ModelUrl url{.server = text.substr(0, slash), .model = TRY(Decode(text, name)), .version = {}};
  if (versions != std::string_view::npos) {
    url.version = TRY(Decode(text, path.substr(versions + kVersions.size())));
    if (url.version.empty() || url.version.contains('/'))
      return Wrong(text, "names no version after /versions/");
  }
  return url;
}

Result<std::unique_ptr<infer::Endpoint>> MakeClient(const std::string& server, http::ClientOptions options,
                                                    const Clock& clock) {
  return server.starts_with(kGrpc) ? MakeGrpcClient(server, options, clock)
                                   : MakeHttpClient(server, options, clock);
}

}  // namespace weir::oip
