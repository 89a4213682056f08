#include "report/unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::report {
namespace {

// Endings of a metric's name, each with its unit. The first that fits: longer ones first.
constexpr struct {
  std::string_view ending, unit;
  double scale;
} kEndings[] = {{"images_per_s", "images/s", 1},
                {"rows_per_s", "rows/s", 1},
                {"gbit_per_s", "Gbit/s", 1},
                {"switches_per_s", "1/s", 1},
                {"throughput_per_s", "requests/s", 1},
                {"cpu_ms_per_image", "ms of CPU time an image", 1},
                {"cpu_us_per_request", "µs of CPU time a request", 1},
                {"us_per_sample", "µs a sample", 1},
                {"bytes", "MB", 1e-6},
                {"_percent", "%", 1},
                {"_watts", "W", 1},
                {"_mhz", "MHz", 1},
                {"_ms", "ms", 1},
                {"_us", "µs", 1},
                {"_j", "J", 1},
                {"_s", "s", 1},
                {"_cpu", "cores", 1}};

constexpr std::pair<std::string_view, std::string_view> kBottlenecks[] = {
    {"read", "storage: the loaders wait for it"},
    {"decode", "reading and preparing the pictures, on the application's CPU"},
    {"infer", "the engine"},
    {"network", "the link to the server"},
    {"in_flight", "the depth: more batches in flight would find the others idle"},
    {"cpu", "the cores of the application's machine, all taken by it, its server or others"},
    {"print", "writing the answers"},
    {"client", "the CPU time of the sending"},
    {"server", "the server, or the way to it"}};

}  // namespace

Unit UnitOf(std::string_view metric) {
  while (!metric.empty()) {
    const size_t dot = metric.find('.');
    const std::string_view part = metric.substr(0, dot);
    const auto found =
        std::ranges::find_if(kEndings, [part](const auto& one) { return part.ends_with(one.ending); });
    if (found != std::end(kEndings)) return {.name = std::string(found->unit), .scale = found->scale};
    metric = dot == std::string_view::npos ? std::string_view() : metric.substr(dot + 1);
  }
  return {};
}

std::string WithUnit(const std::string& label, const std::string& unit) {
  return unit.empty() ? label : fmt::format("{} ({})", label, unit);
}

std::string_view BottleneckMeaning(std::string_view bottleneck) {
  for (const auto& [word, meaning] : kBottlenecks) {
    if (word == bottleneck) return meaning;
  }
  return "";
}

}  // namespace weir::report
