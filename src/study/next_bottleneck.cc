#include "study/next_bottleneck.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace weir::study {
namespace {

constexpr const char* kRate = "throughput_images_per_s";
constexpr const char* kBound = "bound_images_per_s.";

using ByBlock = std::map<int, double>;

double Mean(const ByBlock& values) {
  double sum = 0;
  for (const auto& [block, value] : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Returns the rate that the link carries, by the bytes of an image on its busier way.
ByBlock LinkBound(const Measured& measured, size_t index) {
  const ByBlock rate = measured.ByBlock(index, "link.gbit_per_s");
  const ByBlock there = measured.ByBlock(index, "link.to_server_bytes");
  const ByBlock back = measured.ByBlock(index, "link.from_server_bytes");
  const ByBlock images = measured.ByBlock(index, "images");
  ByBlock bound;
  for (const auto& [block, gbit] : rate) {
    if (!there.contains(block) || !back.contains(block) || !images.contains(block)) continue;
    const double bytes = std::max(there.at(block), back.at(block)) / images.at(block);
    if (gbit > 0 && bytes > 0) bound[block] = gbit * 1e9 / 8 / bytes;
  }
  return bound;
}

std::map<std::string, ByBlock> BoundsOf(const Measured& measured, size_t index) {
  std::map<std::string, ByBlock> bounds;
  for (const std::string& metric : measured.metrics()) {
    if (!metric.starts_with(kBound) || metric.ends_with(".pipeline")) continue;
    ByBlock values = measured.ByBlock(index, metric);
    if (!values.empty()) bounds[metric.substr(std::string(kBound).size())] = std::move(values);
  }
  if (ByBlock link = LinkBound(measured, index); !link.empty()) bounds["network"] = std::move(link);
  return bounds;
}

std::optional<stats::Ratio> GainOf(const ByBlock& rates, const ByBlock& bounds, bool overlapped,
                                   double confidence) {
  std::vector<double> logs;
  for (const auto& [block, rate] : rates) {
    const auto bound = bounds.find(block);
    if (bound == bounds.end() || !(rate > 0) || !(bound->second > 0)) continue;
    // A bound is an estimate: one below the measured rate says that nothing is to be gained.
    const double gain = overlapped ? bound->second / rate : 1 / (1 - std::min(0.999, rate / bound->second));
    logs.push_back(std::log(std::max(1.0, gain)));
  }
  return stats::RatioOfLogs(logs, confidence);
}

}  // namespace

std::optional<NextBottleneck> FindNextBottleneck(const Configuration& configuration, size_t index,
                                                 const Measured& measured, const AnalysisOptions& options) {
  const auto words = measured.Words(index);
  const auto stages = words.find("bottleneck");
  if (stages == words.end()) return std::nullopt;
  NextBottleneck found;
  for (const auto& [stage, times] : stages->second) {
    found.of += times;
    if (times <= found.times) continue;
    found.stage = stage;
    found.times = times;
  }
  const auto bounds = BoundsOf(measured, index);
  const auto own = bounds.find(found.stage);
  if (own != bounds.end()) found.bound = Mean(own->second);
  for (const auto& [stage, values] : bounds) {
    if (stage == found.stage) continue;
    const double mean = Mean(values);
    if (found.next_bound && mean >= *found.next_bound) continue;
    found.next = stage;
    found.next_bound = mean;
  }
  const ByBlock rates = measured.ByBlock(index, kRate);
  const bool overlapped = configuration.factors.value("mode", std::string("async")) != "sync";
  if (!overlapped && own != bounds.end())
    found.gain = GainOf(rates, own->second, false, options.confidence);
  else if (overlapped && !found.next.empty())
    found.gain = GainOf(rates, bounds.at(found.next), true, options.confidence);
  return found;
}

}  // namespace weir::study
