// A user's goal: the targets, the load, the objective and the prices of weir advise. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace weir::advise {

// Metrics of a trial that targets, the objective and the decision use.
inline constexpr const char* kThroughputMetric = "throughput_images_per_s";
inline constexpr const char* kP99Metric = "response_ms.p99";
inline constexpr const char* kMemoryMetric = "memory_bytes.max";

// A bound of one metric of a trial, in the metric's own unit.
struct Target {
  std::string text;    // as the user wrote it, with its unit: "p99<15ms"
  std::string metric;  // "response_ms.p99"
  double limit = 0;
  bool at_most = true;    // else at least
  int64_t responses = 0;  // response times that a trial needs for it; 0: it is no percentile
  double percentile = 0;  // of the response time; 0: it is none
};

enum class Objective { kCost, kThroughput, kMemory };
std::string_view ToString(Objective objective);  // "cost", "throughput", "memory"

struct Goal {
  std::vector<Target> targets;
  std::optional<double> rate;  // images/s that all instances together must answer
  Objective objective = Objective::kThroughput;
  std::map<std::string, double> price_per_hour;  // of one instance, by architecture or accelerator
};

// Reads NAME<VALUE[UNIT] or NAME>VALUE[UNIT]. NAME is p50, p90, p95, p99 or p99.9 (of the response time;
// units us, ms and s, default ms), throughput (images/s) or memory of the client and the server (units KB, MB
// and GB, default bytes). <= and >= are the same as < and >. kInvalidArgument names the part that is wrong.
Result<Target> ParseTarget(std::string_view text);

// Returns the response times that each trial needs for the targets; nullopt where none is a percentile.
std::optional<int64_t> ResponsesFor(const Goal& goal);

// Reads NAME=VALUE, VALUE above 0. kInvalidArgument otherwise.
Result<std::pair<std::string, double>> ParsePrice(std::string_view text);

}  // namespace weir::advise
