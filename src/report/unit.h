// In what a metric is measured, by its name, and what the words of some metrics mean.
#pragma once

#include <string>
#include <string_view>

namespace weir::report {

struct Unit {
  std::string name;  // "images/s", "MB"; empty: a plain number
  double scale = 1;  // the metric times this is in the unit
};
// Returns the unit of a metric's flat name (docs/results.md): "stages_ms.infer" is in ms,
// "resources.server_cpu.mean" in cores.
Unit UnitOf(std::string_view metric);

// Returns a metric's name in words: "throughput" for "throughput_images_per_s". One without words of its own
// keeps its parts: "stages ms infer".
std::string MetricWords(std::string_view metric);

// "throughput_images_per_s (images/s)"; the label alone without a unit.
std::string WithUnit(const std::string& label, const std::string& unit);

// Returns a phrase for a value of "bottleneck": "infer" is "the engine". Empty for a word that is not known.
std::string_view BottleneckMeaning(std::string_view bottleneck);

}  // namespace weir::report
