// Which web pages may call an HTTP server: the rules for the Origin and Host headers (DNS rebinding, forms
// and scripts of other sites), and what CORS adds to responses.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/http_server.h"

namespace weir::http {

// The rules. Pure.
//
// A request without an Origin is not of a page of another site that could change anything. With one, it is
// allowed if the origin is a loopback name or address, the address that the server listens on or was called
// by, or one of `origins`.
//
// A Host is allowed if it is an IP address (no DNS name, so nothing that could be rebound), a loopback name,
// or one of `hosts`. Other names are refused where the server listens on loopback, or where `hosts` says
// which there are. A server on other addresses takes any name otherwise: its names are not known to it.
class CrossSitePolicy {
 public:
  struct Options {
    std::string address = "127.0.0.1";  // that the server listens on
    std::vector<std::string> origins;   // "https://host" or "https://host:port"; "null"; "*" for all
    std::vector<std::string> hosts;     // names without a port; "*.example.com"; "*" for all
    // Others can be allowed, and refusals name --allow-host and --allow-origin. False: no page of another
    // origin can read an answer.
    bool has_flags = true;
  };
  // kInvalidArgument names the value that is no origin or host.
  static Result<CrossSitePolicy> Create(Options options);

  bool has_flags() const { return has_flags_; }
  // The reason for a 403; nullopt if the request is allowed. `host` as in HttpRequest.
  std::optional<std::string> Refusal(std::string_view host, std::optional<std::string_view> origin) const;

 private:
  CrossSitePolicy() = default;

  bool AllowsHost(std::string_view host) const;
  bool AllowsOrigin(std::string_view origin, std::string_view host) const;

  std::string address_;
  std::vector<std::string> origins_, hosts_;  // in lower case; origins without a default port
  bool any_origin_ = false, any_host_ = false, has_flags_ = true;
};

// A handler that answers 403 to what `policy` refuses and 200 to preflights, adds CORS headers to what
// `inner` answers to pages, and passes on the rest. Pages may read the header `exposed`, if it is not empty.
// `on_refused` is called with the reason of each 403.
HttpServer::Handler GuardCrossSite(HttpServer::Handler inner, CrossSitePolicy policy, std::string exposed,
                                   std::function<void(const std::string&)> on_refused);

}  // namespace weir::http
