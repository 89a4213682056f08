// The URL of a stream, as its parts. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/server_url.h"

namespace weir::watch {

inline constexpr uint16_t kHttpPort = 80, kRtspPort = 554;

struct StreamUrl {
  std::optional<std::string> user;  // decoded, as is the password
  std::string password;
  http::ServerUrl server;
  std::string path = "/";  // with the query, without a fragment
};

// The remedy where a server takes neither user nor password, or they cannot be read.
inline constexpr std::string_view kEncodeAdvice =
    "in a user or a password write @ : / ? # % as %40 %3A %2F %3F %23 %25";

// Splits "SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/PATH][?QUERY]"; `port` is the one where none is given. A
// password may hold bytes that had to be encoded, as far as EndOfUser can tell. kInvalidArgument names what
// is wrong, without the password.
Result<StreamUrl> SplitStreamUrl(std::string_view url, uint16_t port);

}  // namespace weir::watch
