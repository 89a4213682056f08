#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "http/server_url.h"
#include "infer/several.h"
#include "oip/client.h"
#include "oip/clients.h"

namespace weir::oip {
namespace {

constexpr std::string_view kGrpc = "grpc://";

std::unexpected<Error> Wrong(std::string_view url, std::string_view fault) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", WithoutSecrets(url), fault));
}

Status CheckNoUser(const std::string& url) {
  if (EndOfUser(url) == 0) return {};
  return Wrong(url,
               "a server takes no user or password in its URL: give a header, as -H \"Authorization: ...\"");
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
  TRY_STATUS(CheckNoUser(text));
  const size_t slash = text.find('/', scheme.size());
  TRY(ServersOf(text.substr(0, slash)));
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

Result<std::vector<std::string>> ServersOf(const std::string& text) {
  TRY_STATUS(CheckNoUser(text));
  const std::string scheme(http::SchemeOf(text));
  std::vector<std::string> servers;
  std::string_view rest = std::string_view(text).substr(scheme.size());
  while (true) {
    const size_t comma = rest.find(',');
    std::string server = scheme + std::string(rest.substr(0, comma));
    TRY_STATUS(http::ParseServerUrl(server));
    if (std::ranges::find(servers, server) != servers.end())
      return Wrong(text, fmt::format("names {} twice", server));
    servers.push_back(std::move(server));
    if (comma == std::string_view::npos) return servers;
    rest.remove_prefix(comma + 1);
  }
}

Status CheckBalance(infer::Balance balance, const std::string& server) {
  if (balance == infer::Balance::kGrpcRoundRobin && !server.starts_with(kGrpc))
    return Wrong(server, fmt::format("--balance {} is of grpc:// URLs", ToString(balance)));
  if (balance != infer::Balance::kRoundRobin && TRY(ServersOf(server)).size() == 1 &&
      (balance != infer::Balance::kGrpcRoundRobin || TRY(http::ParseServerUrl(server)).literal()))
    return Wrong(server, fmt::format("--balance {} says nothing of one server: give HOST:PORT,HOST:PORT",
                                     ToString(balance)));
  return {};
}

Result<std::unique_ptr<infer::Endpoint>> MakeClient(const std::string& server, http::ClientOptions options,
                                                    const Clock& clock, infer::Balance balance) {
  const std::vector<std::string> servers = TRY(ServersOf(server));
  const bool is_grpc = server.starts_with(kGrpc);
  std::vector<infer::OneServer> several;
  if (balance == infer::Balance::kGrpcRoundRobin) {
    if (!is_grpc) return Wrong(server, fmt::format("the policy {} is of grpc:// URLs", ToString(balance)));
    several.push_back(
        {.name = server, .endpoint = TRY(MakeGrpcRoundRobin(servers, options, clock)), .is_several = true});
  } else {
    auto clients = TRY((is_grpc ? MakeGrpcClients : MakeHttpClients)(servers, options, clock));
    if (clients.size() == 1) return std::move(clients.front());
    for (size_t i = 0; i < servers.size(); ++i)
      several.push_back({.name = servers[i], .endpoint = std::move(clients[i])});
  }
  return infer::MakeSeveral(balance, std::move(several), clock);
}

}  // namespace weir::oip
