// The protocol over gRPC: inference.GRPCInferenceService and grpc.health.v1 on completion queues.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "oip/api.h"
#include "oip/grpc/admission.h"
#include "oip/status.h"

namespace weir::oip {

// Thread-safe.
class OipGrpcServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 8001;  // 0: any
    int threads = 1;  // completion queues, each with a thread "grpc-N"
    size_t max_message = size_t{64} << 20;
    size_t max_bytes_in_flight = size_t{1} << 30;
    int max_streams_per_connection = 1024;
    int max_connections = 1024;
    int max_connections_per_address = 0;  // 0: three quarters of max_connections
    Duration message_timeout = 30s;       // without progress of a request; ten times as long in all
    // Told of every connection and message that is refused or closed, with the client's address. Called on
    // any thread; must not block.
    std::function<void(GrpcRefusal reason, const std::string& who)> refused;
    Compat compat = Compat::kNone;
    bool allow_regions = false;
  };
  // kInvalidArgument for what is no IP address; kIo names the address that cannot be had. `api` and `clock`
  // must outlive the server.
  static Result<std::unique_ptr<OipGrpcServer>> Create(Options options, Api& api, const Clock& clock);
  virtual ~OipGrpcServer() = default;  // cancels what is still open
  virtual int port() const = 0;
  // Calls under way go on; new ones are refused (UNAVAILABLE). Returns at once.
  virtual void StopAccepting() = 0;
  virtual bool WaitUntilIdle(Instant until) = 0;
};

}  // namespace weir::oip
