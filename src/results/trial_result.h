// The result of one trial, as a study's journal keeps it, and its metrics.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/bottleneck.h"
#include "results/load_result.h"
#include "results/monitor_result.h"
#include "results/run_result.h"
#include "results/server_shares.h"
#include "results/verdict.h"

namespace weir::results {

// The metrics of a trial. Values that were not measured are absent.
struct TrialMetrics {
  // Milliseconds of a request on average, by the server's account.
  struct ServerTimes {
    double queue = 0, compute_input = 0, compute_infer = 0, compute_output = 0;
    std::optional<double> request, outside, receive, rows_per_batch;  // of the load generator alone
    bool operator==(const ServerTimes&) const = default;
  };
  // The link between the client and the server.
  struct Link {
    int64_t to_server_bytes = 0, from_server_bytes = 0;
    std::optional<double> gbit_per_s;  // its capacity; absent: not limited
    std::optional<int64_t> rate_changes;
    std::optional<double> latest_change_ms;
    bool operator==(const Link&) const = default;
  };
  // Frames of live streams: captured = answered + the sum of dropped.
  struct Watch {
    int64_t captured = 0, answered = 0, in_time = 0;
    std::map<std::string, int64_t> dropped;  // by cause
    double in_time_percent = 0;
    double cpu_ms_per_frame = 0;
    bool operator==(const Watch&) const = default;
  };
  // The phases that ran beside the client, from their start to its end.
  struct Phase {
    int64_t items = 0;  // samples fed, pictures prepared
    double seconds = 0, per_s = 0;
    std::optional<double> limit_cores;
    bool operator==(const Phase&) const = default;
  };
  struct Beside {
    std::optional<Phase> feed, prepare;
    bool operator==(const Beside&) const = default;
  };
  // Reasons for values that are absent, under the values' names.
  struct Absent {
    struct Resources {
      std::optional<std::string> gpu_percent, container_memory_bytes;
      bool operator==(const Resources&) const = default;
    };
    std::optional<std::string> split_ms, stages_ms, server_resources;
    std::optional<Resources> resources;
    std::optional<std::string> response_ms;
    bool operator==(const Absent&) const = default;
  };

  std::optional<double> throughput_images_per_s;
  // The application tells these.
  std::optional<double> wall_s;
  std::optional<int64_t> images, rejected;
  std::optional<RunResult::Stages> stages_ms;
  std::optional<Bounds> bounds;
  std::optional<RunResult::CpuTimes> cpu_ms_per_image;
  std::optional<RunResult::Accuracy> accuracy;
  // The load generator tells these. The times may be those of one that ran beside the application.
  std::optional<double> throughput_per_s, rows_per_s;
  std::optional<LoadResult::Times> response, service, first_byte, slip;
  std::vector<std::pair<int64_t, int64_t>> response_counts;  // by LoadResult's buckets
  std::optional<LoadResult::Split> split;
  std::optional<LoadResult::Slowest> slowest;
  std::optional<ServerTimes> server;
  std::optional<double> server_mean_batch;
  std::optional<LoadResult::ServerRequests> server_requests;
  std::optional<int64_t> answered, failed, unsent, planned;
  std::optional<double> client_cpu_us_per_request, spin_cpu_s;
  // Both tell these. The server's CPU, accelerator and container are those of the server's own machine.
  std::optional<Resources> resources;
  std::optional<std::string> response_of;  // the source of `response`, if that is not the client
  double machine_cpus = 0;                 // cores that the client may use
  std::optional<double> server_start_s;    // from launch to ready
  std::optional<std::string> container_memory_is;
  // For the client and the server together: of their processes, or of the server's container. Absent where
  // the server's is not known.
  std::optional<Range> memory;
  std::optional<Resources> server_resources;
  std::optional<Link> link;
  std::optional<Watch> watch;           // of live streams
  std::optional<ServerShares> servers;  // if there are several, or a balancer in front: by their own counts
  std::optional<Beside> beside;
  std::optional<std::string> bottleneck;
  std::optional<double> bottleneck_share;
  // Tells what holds back with the bottleneck gone, and the rate that it allows; absent: not known.
  std::optional<std::string> bottleneck_next;
  std::optional<double> bottleneck_next_images_per_s;
  std::optional<std::string> bottleneck_contradiction;  // why the bounds say that it is another; absent: no
  std::optional<int64_t> answers_compared, answers_differ;
  Absent absent;

  Json ToJson() const;
  static Result<TrialMetrics> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const TrialMetrics&) const = default;
};

struct TrialResult {
  Json factors = Json::object();  // the levels that were set, by name
  Json metrics = Json::object();  // of TrialMetrics, or measured by others; names with units
  Verdict verdict;
  std::string provenance;      // where the Provenance it was measured under is kept: a file's name
  std::string command;         // repeats it
  std::string server_command;  // starts its server by hand; empty where it has none of its own

  Json ToJson() const;
  static Result<TrialResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const TrialResult&) const = default;
};

}  // namespace weir::results
