#include "study/next_bottleneck.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/json.h"
#include "results/bounds.h"

namespace weir::study {
namespace {

constexpr const char* kRate = "throughput_images_per_s";

using Counted = std::map<std::string, int64_t>;

std::string Commonest(const Counted& words) {
  const auto most = std::ranges::max_element(words, {}, [](const auto& one) { return one.second; });
  return most == words.end() ? "" : most->first;
}

std::string TextOf(const Json& metrics, const char* key) { return GetString(metrics, key).value_or(""); }

std::optional<double> NumberOf(const Json& metrics, const char* key) {
  const auto found = metrics.find(key);
  return found != metrics.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

// The rate at which the stage holds back, by the bounds of a trial.
std::optional<double> BoundIn(const Json& metrics, const std::string& stage) {
  const auto found = metrics.find("bound_images_per_s");
  if (found == metrics.end() || !found->is_object()) return std::nullopt;
  const auto bound = [&](const char* key) { return NumberOf(*found, key); };
  return results::BoundOf({.read = bound("read"),
                           .decode = bound("decode"),
                           .loaders = bound("loaders"),
                           .infer = bound("infer"),
                           .in_flight = bound("in_flight"),
                           .server = bound("server"),
                           .network = bound("network"),
                           .print = bound("print"),
                           .cpu = bound("cpu")},
                          stage);
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

std::optional<NextBottleneck> FindNextBottleneck(size_t configuration, const Measured& measured,
                                                 const AnalysisOptions& options) {
  const std::vector<Measured::Value> trials = measured.TrialsOf(configuration, kRate);
  Counted stages, nexts;
  NextBottleneck found;
  for (const Measured::Value& one : trials) {
    const std::string stage = TextOf(one.played->record.metrics, "bottleneck");
    if (!stage.empty()) ++stages[stage], ++found.of;
  }
  if (stages.empty()) return std::nullopt;
  found.stage = Commonest(stages);
  found.times = stages[found.stage];
  std::vector<double> own, next, logs;
  for (const Measured::Value& one : trials) {
    const Json& metrics = one.played->record.metrics;
    if (TextOf(metrics, "bottleneck") != found.stage) continue;
    if (const auto bound = BoundIn(metrics, found.stage)) own.push_back(*bound);
    if (found.contradiction.empty()) found.contradiction = TextOf(metrics, "bottleneck_contradiction");
    const auto bound = NumberOf(metrics, "bottleneck_next_images_per_s");
    if (!bound || !(*bound > 0) || !(one.value > 0)) continue;
    ++nexts[TextOf(metrics, "bottleneck_next")];
    next.push_back(*bound);
    // A bound is an estimate: one below the measured rate says that nothing is to be gained.
    logs.push_back(std::log(std::max(1.0, *bound / one.value)));
  }
  if (!own.empty()) found.bound = Mean(own);
  if (std::ssize(next) != found.times) return found;
  found.next = Commonest(nexts);
  found.next_bound = Mean(next);
  found.gain = stats::RatioOfLogs(logs, options.confidence);
  return found;
}

}  // namespace weir::study
