// Where a trial's server runs, and what of it this machine can have.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "launch/container.h"
#include "launch/launched.h"
#include "launch/network_link.h"

namespace weir::trial {

enum class Architecture {
  kInProcess,     // the recogniser is part of the application: there is no server
  kMicroservice,  // a server in a container on this machine
  kDistributed,   // a server on another node: here, behind a network link of a given rate
};
std::string_view ToString(Architecture architecture);  // "in-process", "microservice", "distributed"

// A folder's model goes by the folder's own name.
std::string ModelName(const std::string& model_folder);

// One that is ready. Ends with this object.
struct Server {
  std::unique_ptr<launch::Launched> launched;
  std::string http, grpc;  // "http://HOST:PORT", "grpc://HOST:PORT"
  Duration start{};        // from launch to ready
};

// What this machine can start servers on. One thread at a time; a server must not outlive it.
class Site {
 public:
  struct Options {
    std::string program;  // this program, for the servers that need no container
    std::string model;    // an absolute path to the folder of the model to serve
    std::string image = "localhost/weir";
    double gbit_per_s = 5;  // of the link
    Duration start_timeout = 60s;
  };
  struct Ports {
    int http = 0, grpc = 0, metrics = 0;
  };
  // Finds out: a container is tried, a link is made. `clock` must outlive this.
  Site(Options options, const Clock& clock);

  // Why it cannot be had here, with the remedy; nothing where it can.
  std::optional<Error> Missing(Architecture architecture) const;

  // Starts a server of it and waits until it is ready. Each has ports of its own. REQUIRES: not kInProcess.
  Result<Server> Start(Architecture architecture);

 private:
  Result<std::unique_ptr<launch::Launched>> Launch(Architecture architecture, const Ports& ports);

  const Options options_;
  const Clock& clock_;
  const Result<launch::ContainerTool> containers_;
  const Result<std::unique_ptr<launch::NetworkLink>> link_;
};

}  // namespace weir::trial
