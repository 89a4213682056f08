#include "study/comparison.h"

#include <cmath>
#include <map>
#include <utility>

#include "stats/family.h"

namespace weir::study {
namespace {

void Word(const AnalysisOptions& options, Tested& tested) {
  tested.told = Tell(tested.ratio, tested.adjusted_p, options);
  tested.limit = std::nullopt;
  const stats::Ratio& ratio = tested.ratio;
  if (tested.told == Told::kNothing && ratio.low && *ratio.low > 0)
    tested.limit = stats::DifferenceLimit(*ratio.low, *ratio.high);
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

Told Tell(const stats::Ratio& ratio, double adjusted_p, const AnalysisOptions& options) {
  if (!ratio.low || !ratio.high) return Told::kTooFew;
  if (!(adjusted_p <= options.alpha)) return Told::kNothing;
  if (ratio.ratio > 1 + options.margin) return Told::kHigher;
  if (ratio.ratio < 1 / (1 + options.margin)) return Told::kLower;
  return Told::kSmall;
}

std::optional<Tested> TestLogs(std::span<const double> log_ratios, const AnalysisOptions& options) {
  const auto ratio = stats::RatioOfLogs(log_ratios, options.confidence);
  if (!ratio) return std::nullopt;
  const double p = stats::PairedP(log_ratios);
  Tested tested{.ratio = *ratio, .p = p, .adjusted_p = p};
  if (ratio->log_deviation) {
    const auto smallest =
        stats::SmallestDifference(*ratio->log_deviation, ratio->n, options.alpha, options.power);
    if (smallest) tested.smallest_difference = std::expm1(*smallest);
  }
  Word(options, tested);
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
  std::vector<double> p;
  for (Tested* const one : family) {
    if (!one->ratio.low || !one->ratio.high) continue;
    tested.push_back(one);
    p.push_back(one->p);
  }
  const std::vector<double> adjusted = stats::HolmAdjust(p);
  for (size_t i = 0; i < tested.size(); ++i) {
    tested[i]->adjusted_p = adjusted[i];
    Word(options, *tested[i]);
  }
}

}  // namespace weir::study
