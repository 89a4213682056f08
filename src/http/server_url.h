// Where a server is: "http://HOST:PORT" or "grpc://HOST:PORT".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::http {

// Returns the scheme with its "://", or an empty text if there is none.
std::string_view SchemeOf(std::string_view url);

struct ServerUrl {
  std::string scheme;  // "http" or "grpc"
  std::string host;    // a name, an IPv4, or an IPv6 without its brackets
  uint16_t port = 0;

  bool literal() const;         // an address that needs no resolver
  std::string Address() const;  // "HOST:PORT", an IPv6 in brackets: what people, and the Host header, call it
};

// kInvalidArgument names what is wrong; a path, a query or a user is not part of it.
Result<ServerUrl> ParseServerUrl(const std::string& url);

}  // namespace weir::http
