#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "wire/client.h"
#include "wire/server_url.h"

namespace weir::wire {
namespace {

constexpr std::string_view kHttp = "http://", kGrpc = "grpc://";

std::unexpected<Error> Wrong(std::string_view url, std::string_view fault) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", url, fault));
}

// The scheme with its "://", or nothing.
std::string_view SchemeOf(std::string_view url) {
  const size_t end = url.find("://");
  return end == std::string_view::npos ? "" : url.substr(0, end + 3);
}

Result<uint16_t> ParsePort(std::string_view url, std::string_view text) {
  if (text.empty()) return Wrong(url, "names no port: give HOST:PORT");
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0)
    return Wrong(url, fmt::format("\"{}\" is not a port (1 to 65535)", text));
  return port;
}

bool IsHostByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
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

bool ServerUrl::literal() const {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

std::string ServerUrl::Address() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<ServerUrl> ParseServerUrl(const std::string& url) {
  const std::string_view scheme = SchemeOf(url);
  if (scheme == "https://") return Wrong(url, "https is not spoken here: use http:// or grpc://");
  if (scheme != kHttp && scheme != kGrpc) return Wrong(url, "a server begins with http:// or grpc://");
  std::string_view rest = std::string_view(url).substr(scheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos) return Wrong(url, "a server has no path");

  ServerUrl server{.scheme = std::string(scheme.substr(0, 4))};
  if (rest.starts_with('[')) {
    const size_t end = rest.find("]");
    if (end == std::string_view::npos) return Wrong(url, "the [ of an IPv6 address is not closed");
    server.host = rest.substr(1, end - 1);
    in6_addr address;
    if (inet_pton(AF_INET6, server.host.c_str(), &address) != 1)
      return Wrong(url, fmt::format("\"{}\" is not an IPv6 address", server.host));
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest.front() != ':') return Wrong(url, "after ] comes :PORT");
  } else {
    server.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(server.host.size());
    if (server.host.empty()) return Wrong(url, "names no host");
    if (!std::ranges::all_of(server.host, IsHostByte))
      return Wrong(url, fmt::format("\"{}\" is not a host", server.host));
  }
  server.port = TRY(ParsePort(url, rest.empty() ? rest : rest.substr(1)));
  return server;
}

bool IsModelUrl(const std::string& text) { return !SchemeOf(text).empty(); }

Result<ModelUrl> ParseModelUrl(const std::string& text) {
  const std::string_view scheme = SchemeOf(text);
  const size_t slash = text.find('/', scheme.size());
  TRY_STATUS(ParseServerUrl(text.substr(0, slash)));
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

Result<std::unique_ptr<infer::Endpoint>> MakeClient(const std::string& server, ClientOptions options,
                                                    const Clock& clock) {
  return server.starts_with(kGrpc) ? MakeGrpcClient(server, options, clock)
                                   : MakeHttpClient(server, options, clock);
}

}  // namespace weir::wire
