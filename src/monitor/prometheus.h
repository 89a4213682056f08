// The text in which servers tell their metrics (Prometheus exposition format 0.0.4,
// https://prometheus.io/docs/instrumenting/exposition_formats/). Pure: no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace weir::monitor {

struct Metric {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;  // in the order of the text, unescaped
  double value = 0;                                         // may be infinite, or no number
  std::optional<int64_t> timestamp_ms;                      // since 1970

  bool operator==(const Metric&) const = default;
};

struct PrometheusLimits {
  size_t bytes = 16 << 20;  // of the text
  size_t metrics = 100'000;
  size_t labels = 64;  // of one metric
};

// The samples of a text, in its order. kCorrupt, with the line, for what breaks a rule of the format: a name,
// escape or number that is none, a label twice, a TYPE that is unknown, given twice, or given after its
// samples, a HELP given twice, a last line without its end (the answer was cut off); and for more than
// `limits`. That no two lines tell the same sample is not checked.
Result<std::vector<Metric>> ParsePrometheus(std::string_view text, const PrometheusLimits& limits = {});

}  // namespace weir::monitor
