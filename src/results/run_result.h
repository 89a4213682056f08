// The result of a run, as `weir run --json` prints it and a trial reads it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/bottleneck.h"
#include "results/monitor_result.h"
#include "results/server_shares.h"

namespace weir::results {

struct RunResult {
  // Milliseconds of a request on average, by the server's account.
  struct ServerTimes {
    double queue = 0, compute_input = 0, compute_infer = 0, compute_output = 0;
    bool operator==(const ServerTimes&) const = default;
  };
  // The engine, here or in a server. Absent: not known, or not of this kind of engine.
  struct Engine {
    std::optional<std::string> server, payload, platform;  // of a server's
    std::optional<std::string> engine, engine_version, precision;
    std::optional<int64_t> threads, streams;
    std::optional<std::string> not_batchable;  // why
    std::optional<ServerTimes> server_ms;
    std::optional<int64_t> server_requests;
    std::optional<double> server_mean_batch;
    bool operator==(const Engine&) const = default;
  };
  // Milliseconds summed over pictures, by the events of an accelerator. All within Stages::infer.
  struct DeviceTimes {
    double host_to_device = 0, compute = 0, device_to_host = 0;
    bool operator==(const DeviceTimes&) const = default;
  };
  // Milliseconds. The first two once; the others summed over pictures, waiting included.
  struct Stages {
    double model_prepare = 0, warm_up = 0;
    double load_prepare = 0, wait = 0, send = 0, infer = 0, result_load = 0, print = 0, total = 0;
    std::optional<DeviceTimes> device;  // of an accelerator that tells
    bool operator==(const Stages&) const = default;
  };
  struct CpuTimes {
    double load_prepare = 0, other = 0;
    std::optional<double> infer;  // of an engine in this process
    bool operator==(const CpuTimes&) const = default;
  };
  // Shares from 0 to 1 of the labelled pictures.
  struct Accuracy {
    double top1 = 0, top5 = 0;
    int64_t labelled = 0;
    bool operator==(const Accuracy&) const = default;
  };

  std::string model;  // through EscapeBytes
  Engine engine;
  int64_t batch = 1;
  std::string mode;
  int64_t in_flight = 1, decode_threads = 0;
  bool no_files = false;
  int64_t repeat_data = 1;
  int64_t images = 0, rejected = 0;
  std::map<std::string, int64_t> rejected_by_reason;
  int64_t skipped = 0;
  bool interrupted = false;
  std::optional<double> throughput_images_per_s;
  double wall_s = 0;
  double load_before_s = 0;  // 0: absent
  Stages stages_ms;
  Resources resources;
  std::optional<Resources> server_resources;  // of the server, where it was watched
  std::optional<ServerShares> servers;        // if there are several
  Bounds bounds;
  std::optional<CpuTimes> cpu_ms_per_image;
  std::optional<Bottleneck> bottleneck;
  std::optional<Costs> costs;  // that the bounds and the bottleneck follow from
  std::optional<Accuracy> accuracy;
  std::optional<std::string> accuracy_left_out;  // why
  std::vector<std::string> warnings;
  Json provenance;  // record::Provenance::ToJson
  std::string command;

  Json ToJson() const;
  static Result<RunResult> FromJson(
      const Json& json);  // kCorrupt names the key; kUnsupported for another schema_version
  bool operator==(const RunResult&) const = default;
};

Json ToJson(const RunResult::Engine& engine);

}  // namespace weir::results
