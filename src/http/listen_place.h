// Where a page of this program listens: "HOST:PORT" of a command line. Pure.
#pragma once

#include <string>

#include "base/error.h"

namespace weir::http {

struct ListenPlace {
  std::string host;  // an IPv6 in brackets
  int port = 0;      // 0: any
};

// kInvalidArgument names the flag.
Result<ListenPlace> ParseListenPlace(const std::string& flag, const std::string& text);

}  // namespace weir::http
