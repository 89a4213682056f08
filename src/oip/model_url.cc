#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/text.h"
#include "http/server_url.h"
#include "oip/client.h"

namespace weir::oip {
namespace {

constexpr std::string_view kGrpc = "grpc://";

std::unexpected<Error> Wrong(std::string_view url, std::string_view fault) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", url, fault));
}

Result<std::string> Decode(std::string_view url, std::string_view text) {
  std::optional<std::string> decoded = DecodePercent(text);
  if (!decoded) return Wrong(url, "a % is not followed by two hexadecimal digits");
  return *std::move(decoded);
}

}  // namespace

bool IsModelUrl(const std::string& text) { return !http::SchemeOf(text).empty(); }

Result<ModelUrl> ParseModelUrl(const std::string& text) {
  const std::string_view scheme = http::SchemeOf(text);
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
