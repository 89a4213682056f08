// The server: models, protocol servers, metrics, and their life from start to the last answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "oip/api.h"
#include "oip/status.h"
#include "serve/logger.h"
#include "serve/repository.h"

namespace weir::serve {

// Where a protocol server listens.
struct ListenAddress {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: a free one; below 0: that server is disabled
};

struct ServerOptions {
  std::vector<std::string> repositories;  // folders of models, model folders or .onnx files
  std::vector<std::string> allow_links;   // folders that links of models may lead below, beside these
  Repository::Control control = Repository::Control::kNone;
  std::chrono::milliseconds poll_period{15'000};  // of Control::kPoll: between two looks at the files
  std::vector<std::string> load;                  // of explicit control: to begin with; "*": all
  std::string engine;                             // instead of the models' own; empty: theirs
  std::string device;                             // of all models, instead of their own; empty: theirs
  int threads = 0;                                // of each model's engine, instead of its own; 0: its own
  std::string cache_dir;

  ListenAddress http{.port = 8000}, grpc{.port = 8001}, metrics{.port = 8002};
  int http_threads = 1, grpc_threads = 1;
  int decode_threads = 0;  // 0: as many as this process may use CPUs
  size_t max_request_bytes = size_t{64} << 20;
  size_t max_bytes_in_flight = size_t{1} << 30;        // of each server, and of prepared pictures
  int max_connections = 1024;                          // of each server
  int max_connections_per_address = 0;                 // of gRPC; 0: three quarters of max_connections
  std::chrono::milliseconds message_timeout{30'000};   // without progress of a gRPC request
  std::chrono::milliseconds request_timeout{600'000};  // for an HTTP request to arrive whole
  size_t least_body_rate = 16384;  // bytes a second of an HTTP body, and of a response being read; 0: any
  std::vector<std::string> allow_origins, allow_hosts;  // see oip::CrossSitePolicy::Options
  int max_queue = 256;                                  // calls, of models whose configuration does not say

  bool allow_regions = false;
  uint64_t max_region_bytes = uint64_t{16} << 30;  // of all regions together
  bool strict_readiness = true;
  oip::Compat compat = oip::Compat::kNone;
  std::chrono::milliseconds drain_delay{0};       // between not being ready and refusing work
  std::chrono::milliseconds exit_timeout{30000};  // for the work under way, after the delay
  std::string version;                            // of the program
};

// Thread-safe.
class Server {
 public:
  // Listens, and loads its models in the background: it is live before it is ready. kIo names an address that
  // cannot be had; CrossSitePolicy's and Repository's errors.
  // `clock` and `logger` must outlive it.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, const Clock& clock, Logger& logger);
  virtual ~Server() = default;

  struct Ports {
    int http = -1, grpc = -1, metrics = -1;  // those really in use; below 0: none
  };
  virtual Ports ports() const = 0;

  // Blocks until the models to begin with are loaded or have failed, or `stop` is asked for.
  virtual void WaitUntilLoaded(const std::stop_token& stop) = 0;
  virtual Status Ready() = 0;  // the reason why it is not
  virtual std::vector<oip::IndexEntry> Index() = 0;
  virtual Result<oip::ModelMetadata> Metadata(const std::string& model) = 0;

  // Blocks until `stop` is asked for, or a device is lost so that nothing can be computed in this process any
  // more: returns why.
  virtual std::optional<std::string> WaitUntilLost(const std::stop_token& stop) = 0;

  // Not ready from now on; after the delay new work is refused, the work under way is finished, and the
  // models are let go. False: some work was still there when the time was over, and destroying the server
  // would block until it ends.
  virtual bool Stop() = 0;
};

}  // namespace weir::serve
