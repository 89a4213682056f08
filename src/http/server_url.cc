#include "http/server_url.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

namespace weir::http {
namespace {

constexpr std::string_view kHttp = "http://", kGrpc = "grpc://";

std::unexpected<Error> Wrong(std::string_view url, std::string_view fault) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", url, fault));
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

}  // namespace

std::string_view SchemeOf(std::string_view url) {
  const size_t end = url.find("://");
  return end == std::string_view::npos ? "" : url.substr(0, end + 3);
}

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

}  // namespace weir::http
