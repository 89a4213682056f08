// Resource use as a result has it: the JSON of monitor::Resources, and the figures in it that rules look at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

struct ResourceUse {
  struct Range {
    std::string name;  // "app_cpu", "gpus[1].percent", "server_metrics.cpu"
    double mean = 0, max = 0, min = 0;
    bool operator==(const Range&) const = default;
  };
  Json json;  // all of it
  std::vector<Range> ranges;
  std::optional<double> steal_percent, throttled_s;
  double wall_s = 0, period_ms = 0;
  int64_t samples = 0;

  Json ToValue() const { return json; }
  // kCorrupt names the key that is missing or of another kind. Figures are finite and 0 or more.
  static Result<ResourceUse> FromValue(const Json& json);
  bool operator==(const ResourceUse&) const = default;
};

}  // namespace weir::results
