#include "study/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "stats/family.h"

namespace weir::study {
namespace {

Told Tell(const stats::Ratio& ratio, const AnalysisOptions& options) {
  if (!ratio.low || !ratio.high) return Told::kTooFew;
  if (*ratio.low <= 1 && *ratio.high >= 1) return Told::kNothing;
  if (ratio.ratio > 1 + options.margin) return Told::kHigher;
  if (ratio.ratio < 1 / (1 + options.margin)) return Told::kLower;
  return Told::kSmall;
}

// As one of `family` tests that are read together.
void Judge(size_t family, const AnalysisOptions& options, Tested& tested) {
  stats::Ratio& ratio = tested.ratio;
  stats::SetConfidence(stats::SimultaneousConfidence(options.confidence, family), ratio);
  // Two blocks may leave more open than numbers can say.
  if (ratio.low && !(*ratio.low > 0 && std::isfinite(*ratio.high))) ratio.low = ratio.high = std::nullopt;
  tested.adjusted_p = stats::SimultaneousP(tested.p, family);
  tested.told = Tell(ratio, options);
  tested.limit = tested.smallest_difference = std::nullopt;
  if (tested.told == Told::kNothing) tested.limit = stats::DifferenceLimit(*ratio.low, *ratio.high);
  if (!ratio.log_deviation) return;
  const auto smallest = stats::SmallestDifference(
      *ratio.log_deviation, ratio.n, options.alpha / static_cast<double>(std::max<size_t>(1, family)),
      options.power);
  if (smallest && std::isfinite(std::expm1(*smallest))) tested.smallest_difference = std::expm1(*smallest);
}

}  // namespace

std::string_view ToString(Told told) {
  switch (told) {
    case Told::kHigher:
      return "higher";
    case Told::kLower:
      return "lower";
    case Told::kSmall:
      return "small difference";
    case Told::kNothing:
      return "no difference shown";
    case Told::kTooFew:
      return "too few";
  }
  return "";
}

std::optional<Tested> TestLogs(std::span<const double> log_ratios, const AnalysisOptions& options) {
  const auto ratio = stats::RatioOfLogs(log_ratios, options.confidence);
  if (!ratio) return std::nullopt;
  Tested tested{.ratio = *ratio, .p = stats::PairedP(log_ratios)};
  Judge(1, options, tested);
  return tested;
}

std::vector<double> LogRatios(const Measured& measured, size_t configuration, size_t against,
                              const std::string& metric) {
  const std::map<int, double> values = measured.ByBlock(configuration, metric);
  const std::map<int, double> references = measured.ByBlock(against, metric);
  std::vector<double> logs;
  for (const auto& [block, value] : values) {
    const auto reference = references.find(block);
    if (reference == references.end()) continue;
    if (!(value > 0) || !(reference->second > 0)) return {};
    logs.push_back(std::log(value / reference->second));
  }
  return logs;
}

std::optional<Comparison> Compare(const Measured& measured, size_t configuration, size_t against,
                                  const std::string& metric, const AnalysisOptions& options) {
  auto tested = TestLogs(LogRatios(measured, configuration, against, metric), options);
  if (!tested) return std::nullopt;
  Comparison comparison;
  static_cast<Tested&>(comparison) = *std::move(tested);
  comparison.configuration = configuration;
  comparison.against = against;
  comparison.metric = metric;
  return comparison;
}

void AdjustFamily(std::span<Tested* const> family, const AnalysisOptions& options) {
  std::vector<Tested*> tested;  // those with an interval: the others test nothing
  std::ranges::copy_if(family, std::back_inserter(tested),
                       [](const Tested* one) { return one->ratio.log_error.has_value(); });
  for (Tested* const one : tested) Judge(tested.size(), options, *one);
}

}  // namespace weir::study
