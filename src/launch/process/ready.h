// Whether a server answers: what WaitUntilReady of launched.h asks.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace weir::launch {

// Asks for "http://HOST[:PORT][/PATH]" once, with a connection of its own. Fine where the status is 200 to
// 299; else kIo says what came instead, kDeadline that nothing did within `timeout`, kInvalidArgument what is
// wrong with the URL.
Status AskHttp(const std::string& url, Duration timeout);

// The same for an http URL; for "tcp://HOST:PORT" whether a connection is taken, which is all that a server
// without HTTP can be asked.
Status AskReady(const std::string& url, Duration timeout);

struct HttpUrl {
  std::string host, port, path;
};
Result<HttpUrl> ParseHttpUrl(const std::string& url);

}  // namespace weir::launch
