// The levels of one configuration, read once: what a trial has to set up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "infer/choices.h"
#include "infer/device.h"
#include "study/choices.h"

namespace weir::trial {

using infer::Mode;
using infer::Payload;
using infer::Protocol;
using study::Architecture;
using study::Balancer;
using study::DataPath;
using study::PageCache;

// The source of the requests.
struct ApplicationLoad {};  // weir run, over the pictures
struct ClosedLoad {};       // weir load, so many in flight
struct OpenLoad {           // weir load, at a rate
  double per_second = 1;
  std::string distribution = "poisson";
};

struct StreamsLoad {  // weir watch, so many made streams
  int streams = 1;
  double fps = 10;
  double deadline_ms = 100;
};

// A server that is not weir's own.
struct OtherServer {
  std::string name;
  std::vector<std::string> command;  // one of these three
  std::string image, url;
  std::vector<std::string> arguments;  // of an image
  std::string ready;                   // a URL
  std::string http, grpc;              // "http://HOST:PORT", "grpc://..."; empty: none, or those of its ports
  std::string model;                   // its name there; empty: as here
  std::string repository;              // a folder of models whose config.pbtxt the trial sets; empty: none
};

struct ServerBatching {
  int max_batch = 0;  // 0: off
  int64_t delay_us = 0;
};

struct Network {
  std::optional<double> gbit_per_s;  // nothing: not shaped
  struct Variable {
    double low = 1, high = 5;  // Gbit/s
    Duration every = 100ms;
  };
  std::optional<Variable> variable;  // instead of the rate
  Duration delay{};
};

// Cores that a phase may use at most; nothing: no limit.
struct Limits {
  std::optional<double> serve, feed, prepare;
};

struct Setting {
  Architecture architecture = Architecture::kInProcess;
  std::string model;  // as the study names it
  std::optional<OtherServer> server;
  Protocol protocol = Protocol::kHttp;
  Mode mode = Mode::kAsync;
  std::optional<int> in_flight;
  std::variant<ApplicationLoad, ClosedLoad, OpenLoad, StreamsLoad> load;
  int batch = 8;
  DataPath data_path = DataPath::kFiles;
  Payload payload = Payload::kTensor;
  bool shared_memory = false;  // tensors reach the server so, not in requests
  std::optional<int64_t> images;
  int replication = 1;
  std::string engine;  // with the accelerator in its place, where there is one; empty: as the model says
  std::string device;  // empty: as the model says
  std::optional<infer::Preprocess> preprocess;  // nothing: as the model says
  bool cuda_graph = false;
  infer::Precision precision = infer::Precision::kF32;
  int threads = 0, streams = 0, instances = 1;
  bool instances_given = false;  // else another server keeps its own number
  int servers = 1;
  int clients = 1;                                 // load generators that begin together
  Balancer balancer = Balancer::kNone;             // kRoundRobin: the client's gRPC library
  std::vector<std::string> run_flags, load_flags;  // of factors that the client obeys by a flag alone
  std::optional<ServerBatching> server_batching;   // nothing: as the model says
  Network network;
  std::vector<int> server_cpus, client_cpus;         // empty: all
  bool feed_beside = false, prepare_beside = false;  // run while the client does
  Limits limits;
  std::optional<PageCache> page_cache;  // nothing: as it is

  bool is_accelerated() const { return !device.empty() && device != ToString(infer::Device::Kind::kCpu); }
  bool is_emulated() const { return engine.starts_with(infer::kEmulatedPrefix); }
};

// `factors` are a study::Configuration's; what is absent there has its usual level. kInvalidArgument for what
// no study file could say.
Result<Setting> ReadSetting(const Json& factors);

}  // namespace weir::trial
