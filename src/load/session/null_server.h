// A server that does nothing, started beside the one under load: what the load generator itself can do at
// most.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/temporary_folder.h"
#include "infer/endpoint.h"
#include "launch/server.h"

namespace weir::load {

// This program as a server in a process of its own, on loopback, with one model that answers at once with
// outputs of the given model's shapes (free dimensions are 1). Ends with this object. One thread at a time.
class NullServer {
 public:
  // kInvalidArgument for a model that such a server cannot stand for; else what launching it says.
  static Result<NullServer> Start(const infer::ModelInfo& model, const Clock& clock);

  // The model's URL: "http://127.0.0.1:PORT/NAME", "grpc://127.0.0.1:PORT/NAME".
  const std::string& http() const { return http_; }
  const std::string& grpc() const { return grpc_; }

 private:
  explicit NullServer(TemporaryFolder repository) : repository_(std::move(repository)) {}

  TemporaryFolder repository_;
  std::optional<launch::StartedServer> server_;
  std::string http_, grpc_;
};

// The configuration (config.pbtxt) of the model it serves.
Result<std::string> NullConfig(const infer::ModelInfo& model);

}  // namespace weir::load
