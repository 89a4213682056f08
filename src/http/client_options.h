// How a client connects to a server.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::http {

struct ClientOptions {
  // HTTP: the most connections; a call beyond them waits for one. gRPC: channels, used in turn.
  int connections = 0;  // 0: HTTP as many as are in flight, gRPC 1
  // I/O threads, "client-N". 0: none, inferences go on while the owner calls Drive; over HTTP nothing else
  // can then be asked.
  int threads = 1;
  std::chrono::milliseconds connect_timeout{5000};
  std::vector<std::string> headers;      // "Name: value", of every request; over gRPC its metadata
  std::chrono::milliseconds timeout{0};  // of a call from sent to done; 0: only its own deadline
};

// kInvalidArgument for a negative number or time.
inline Status CheckOptions(const ClientOptions& options) {
  if (options.threads < 0 || options.connections < 0 || options.connect_timeout.count() < 1 ||
      options.timeout.count() < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                "a client needs 0 or more threads and connections and times that are not negative");
  }
  return {};
}

}  // namespace weir::http
