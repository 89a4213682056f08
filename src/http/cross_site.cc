#include "http/cross_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"
#include "http/error_body.h"

namespace weir::http {
namespace {

constexpr std::string_view kMethods = "GET, HEAD, POST";

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Compares with the hosts that most clients on this machine send, with or without a port.
bool IsUsualLoopback(std::string_view host) {
  for (const std::string_view usual : {"127.0.0.1", "localhost"}) {
    if (!host.starts_with(usual)) continue;
    const std::string_view port = host.substr(usual.size());
    return port.empty() || (port[0] == ':' && std::ranges::all_of(port.substr(1), IsDigit));
  }
  return false;
}

// The name or address of "name", "name:port", "[address]" or "[address]:port", without a dot at its end.
// nullopt if it is none of them.
std::optional<std::string_view> NameOf(std::string_view authority) {
  std::string_view name, port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == authority.npos || end == 1) return std::nullopt;
    name = authority.substr(0, end + 1);
    port = authority.substr(end + 1);
    const auto allowed = [](char c) {
      return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
    };
    if (!std::ranges::all_of(name.substr(1, end - 1), allowed)) return std::nullopt;
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    name = authority.substr(0, colon);
    port = authority.substr(colon);
    if (name.size() > 1 && name.ends_with('.')) name.remove_suffix(1);
    const auto allowed = [](char c) {
      return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
             c == '_';
    };
    if (name.empty() || !std::ranges::all_of(name, allowed)) return std::nullopt;
  }
  if (!port.empty() && (port[0] != ':' || !std::ranges::all_of(port.substr(1), IsDigit))) return std::nullopt;
  return name;
}

// `name` is not empty. No name of the DNS ends in a label of digits alone.
bool IsAddress(std::string_view name) {
  if (name.starts_with('[')) return true;
  if (!IsDigit(name[0])) return false;
  return std::ranges::all_of(name, [](char c) { return IsDigit(c) || c == '.'; });
}

bool IsLoopbackAddress(std::string_view name) { return name == "[::1]" || name.starts_with("127."); }

// `name` in lower case.
bool IsLoopback(std::string_view name) {
  if (IsAddress(name)) return IsLoopbackAddress(name);
  return name == "localhost" || name.ends_with(".localhost");
}

struct Origin {
  std::string_view scheme, authority;
};

std::optional<Origin> ParseOrigin(std::string_view text) {
  const size_t end = text.find("://");
  if (end == text.npos || end == 0) return std::nullopt;
  return Origin{text.substr(0, end), text.substr(end + 3)};
}

// In lower case, without the scheme's own port.
std::string Normal(std::string_view origin) {
  std::string text = Lower(origin);
  if (text.starts_with("http://") && text.ends_with(":80")) text.resize(text.size() - 3);
  if (text.starts_with("https://") && text.ends_with(":443")) text.resize(text.size() - 4);
  return text;
}

std::string InBrackets(const std::string& address) {
  return address.find(':') == address.npos ? address : "[" + Lower(address) + "]";
}

}  // namespace

Result<CrossSitePolicy> CrossSitePolicy::Create(Options options) {
  CrossSitePolicy policy;
  policy.address_ = InBrackets(options.address);
  policy.has_flags_ = options.has_flags;
  for (const std::string& origin : options.origins) {
    if (origin == "*") {
      policy.any_origin_ = true;
      continue;
    }
    const auto parsed = ParseOrigin(origin);
    if (origin != "null" && (!parsed || !NameOf(parsed->authority))) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("--allow-origin {}: not an origin; give scheme and host, such as https://example.com",
                      Quoted(origin)));
    }
    policy.origins_.push_back(Normal(origin));
  }
  for (const std::string& host : options.hosts) {
    if (host == "*") {
      policy.any_host_ = true;
      continue;
    }
    const std::string_view name = host.starts_with("*.") ? std::string_view(host).substr(2) : host;
    if (NameOf(name) != name) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("--allow-host {}: not a host name; give one without a port, such as example.com",
                      Quoted(host)));
    }
    policy.hosts_.push_back(Lower(host));
  }
  if (policy.hosts_.empty() && !IsLoopback(policy.address_)) policy.any_host_ = true;
  return policy;
}

bool CrossSitePolicy::AllowsHost(std::string_view host) const {
  if (any_host_ || host.empty() || IsUsualLoopback(host)) return true;
  const auto given = NameOf(host);
  if (!given) return false;
  if (IsAddress(*given)) return true;
  const std::string name = Lower(*given);
  return IsLoopback(name) || std::ranges::any_of(hosts_, [&](const std::string& allowed) {
           return allowed.starts_with("*.") ? name.ends_with(std::string_view(allowed).substr(1))
                                            : name == allowed;
         });
}

bool CrossSitePolicy::AllowsOrigin(std::string_view origin, std::string_view host) const {
  if (any_origin_ || std::ranges::find(origins_, Normal(origin)) != origins_.end()) return true;
  const auto parsed = ParseOrigin(origin);
  if (!parsed) return false;
  const auto given = NameOf(parsed->authority);
  const std::string scheme = Lower(parsed->scheme);
  if (!given || (scheme != "http" && scheme != "https")) return false;
  const std::string name = Lower(*given);
  if (IsLoopback(name)) return true;
  // A page that came from the address that it now calls came from this machine.
  return IsAddress(name) && (name == address_ || name == Lower(NameOf(host).value_or("")));
}

std::optional<std::string> CrossSitePolicy::Refusal(std::string_view host,
                                                    std::optional<std::string_view> origin) const {
  if (!AllowsHost(host)) {
    return fmt::format("the host {} is not one of this server's names: {}", Quoted(host),
                       has_flags_ ? "allow it with --allow-host" : "use an address or localhost");
  }
  if (origin && !AllowsOrigin(*origin, host)) {
    return fmt::format("pages of {} may not call this server{}", Quoted(*origin),
                       has_flags_ ? ": allow them with --allow-origin" : "");
  }
  return std::nullopt;
}

namespace {

using Headers = std::vector<std::pair<std::string_view, std::string>>;

Headers CorsHeaders(std::string_view origin, const std::string& exposed) {
  Headers headers = {{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}};
  if (!exposed.empty()) headers.emplace_back("Access-Control-Expose-Headers", exposed);
  return headers;
}

// Puts the headers of CORS onto the response of one request.
class CorsConnection final : public HttpResponder::Connection {
 public:
  CorsConnection(HttpResponder to, Headers headers) : to_(std::move(to)), headers_(std::move(headers)) {}

  void Answer(uint64_t, HttpResponse reply, HttpResponder::Sent sent) override {
    for (auto& header : headers_) reply.headers.push_back(std::move(header));
    to_.Send(std::move(reply), std::move(sent));
  }

 private:
  HttpResponder to_;
  Headers headers_;
};

bool IsPreflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && request.Header("Access-Control-Request-Method");
}

HttpResponse PreflightReply(const HttpRequest& request, const std::string& exposed) {
  HttpResponse reply{.status = 200, .headers = CorsHeaders(*request.origin, exposed)};
  reply.headers.emplace_back("Access-Control-Allow-Methods", kMethods);
  const std::string usual = exposed.empty() ? "Content-Type" : "Content-Type, " + exposed;
  reply.headers.emplace_back("Access-Control-Allow-Headers",
                             request.Header("Access-Control-Request-Headers").value_or(usual));
  if (request.Header("Access-Control-Request-Private-Network") == "true")
    reply.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  reply.headers.emplace_back("Access-Control-Max-Age", "600");
  return reply;
}

}  // namespace

HttpServer::Handler GuardCrossSite(HttpServer::Handler inner, CrossSitePolicy policy, std::string exposed,
                                   std::function<void(const std::string&)> on_refused) {
  return [inner = std::move(inner), policy = std::move(policy), exposed = std::move(exposed),
          on_refused = std::move(on_refused)](HttpRequest&& request, HttpResponder&& responder) {
    if (const auto reason = policy.Refusal(request.host, request.origin)) {
      if (on_refused) on_refused(*reason);
      return responder.Send(
          {.status = 403, .body = {Bytes::Copy(ErrorBody({ErrorCode::kInvalidArgument, *reason}))}});
    }
    if (!request.origin || !policy.has_flags()) return inner(std::move(request), std::move(responder));
    if (IsPreflight(request)) return responder.Send(PreflightReply(request, exposed));
    auto cors = std::make_shared<CorsConnection>(std::move(responder), CorsHeaders(*request.origin, exposed));
    inner(std::move(request), HttpResponder(std::move(cors), 0));
  };
}

}  // namespace weir::http
