// What `weir load --json` writes, read back as far as its rules need it: kinds only, no rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "record/verdict.h"

namespace weir::load::stored {

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99_9", 0.999}};
constexpr size_t kPercentileCount = std::size(kPercentiles);

struct Interval {
  double low = 0, high = 0;
};

// Milliseconds.
struct Times {
  std::optional<double> mean, standard_deviation, min, max;
  std::array<std::optional<double>, kPercentileCount> percentiles;
  std::array<std::optional<Interval>, kPercentileCount> intervals;
  std::optional<Interval> mean_interval;
  int64_t n = 0;
};

// What the generator did in a run.
struct Generator {
  int64_t sent = 0, late = 0;  // late: more than 1 ms after the plan
  double sent_per_s = 0;
  double empty_share = 0;     // of a closed loop's places, over 1 ms at a time
  double busiest_thread = 0;  // share of the time
};

struct Run {
  double throughput_per_s = 0, measured_s = 0;
  int64_t planned = 0, answered = 0;
  bool by_count = false;
  std::optional<Generator> generator;
  Times response;
};

// Milliseconds of a request on average, by the server's account.
struct ServerTimes {
  std::optional<double> receive;  // where its responses tell
  double queue = 0, compute_input = 0, compute_infer = 0, compute_output = 0, request = 0;
  double outside = 0;  // may be below 0
};

// Parts of the mean response time, milliseconds; older results have some below 0.
struct Split {
  double slip = 0, wire_and_wait = 0, client_receive = 0;
  std::optional<double> client_send;  // where the client tells
  struct Server {
    std::optional<double> receive;
    double queue = 0, compute_input = 0, compute_infer = 0, compute_output = 0, rest = 0;
  };
  std::optional<Server> server;
};

// The answered requests above a percentile.
struct Slowest {
  double above_percentile = 0, mean = 0;
  int64_t n = 0;
  Split split;
};

// Requests that the server counted, and those of them that may be the generator's.
struct ServerRequests {
  int64_t counted = 0, ours_at_most = 0, others_at_least = 0;
};

struct Used {
  struct Range {
    std::string name;  // "app_cpu", "gpus[1].percent"
    double mean = 0, max = 0, min = 0;
  };
  std::vector<Range> ranges;
  std::optional<double> steal_percent, throttled_s;
  double wall_s = 0, period_ms = 0;
  int64_t samples = 0;
};

struct StoredReason {
  std::string reason;
  std::vector<std::string> about;
};

struct Level {
  std::optional<int64_t> concurrency;  // of a closed loop
  std::optional<int64_t> repeats;      // where there are several
  std::optional<double> throughput_standard_error;
  std::optional<std::string> below_threshold;
  double throughput_per_s = 0, rows_per_s = 0, measured_s = 0;
  int64_t planned = 0, answered = 0, failed = 0, unsent = 0;
  std::string throughput_verdict, latency_verdict;
  std::vector<StoredReason> reasons;
  Times response, service, first_byte, slip;
  std::optional<Times> client_send;
  std::vector<std::pair<std::string, int64_t>> errors;
  std::optional<ServerTimes> server;
  std::optional<ServerRequests> server_requests;
  std::optional<Split> split;
  std::optional<Slowest> slowest;
  std::optional<Used> resources, server_resources;
  std::vector<Run> runs;

  bool HasReason(record::Reason reason) const;
  // Both claims are, and for this reason.
  bool IsInvalidFor(record::Reason reason) const;
};

// What is asked of the latency.
struct Claim {
  double percentile = 0;
  std::optional<double> latency_threshold_ms;
};

struct Stored {
  int64_t batch = 1;
  std::optional<Claim> claim;
  std::optional<double> ceiling_per_s;  // requests that the generator can send to a server that does nothing
  std::vector<Level> levels;
  bool interrupted = false;
};

// kCorrupt names the key, with its place, that is missing or of another kind; kUnsupported for another
// schema_version.
Result<Stored> Read(const Json& json);

}  // namespace weir::load::stored
