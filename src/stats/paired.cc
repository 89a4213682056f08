#include "stats/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/distributions.h"
#include "stats/summary.h"

namespace weir::stats {
namespace {

std::optional<Summary> OfLogs(std::span<const double> values, double confidence) {
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0)) return std::nullopt;
    logs.push_back(std::log(value));
  }
  return Summarise(logs, confidence);
}

}  // namespace

std::optional<Ratio> PairedRatio(std::span<const double> values, std::span<const double> references,
                                 double confidence) {
  if (values.size() != references.size()) return std::nullopt;
  std::vector<double> logs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0) || !(references[i] > 0)) return std::nullopt;
    logs.push_back(std::log(values[i] / references[i]));  // one that is not finite is found below
  }
  return RatioOfLogs(logs, confidence);
}

std::optional<Ratio> RatioOfLogs(std::span<const double> log_ratios, double confidence) {
  const auto logs = Summarise(log_ratios, confidence);
  if (!logs) return std::nullopt;
  Ratio ratio{.n = logs->n, .ratio = std::exp(logs->mean), .log_deviation = logs->standard_deviation};
  if (logs->low) ratio.low = std::exp(*logs->low);
  if (logs->high) ratio.high = std::exp(*logs->high);
  ratio.log_error = logs->standard_error;
  ratio.degrees = static_cast<double>(logs->n - 1);
  return ratio;
}

void SetConfidence(double confidence, Ratio& ratio) {
  if (!ratio.log_error) return;
  const double half_width =
      *ratio.log_error > 0 ? StudentQuantile(ratio.degrees, (1 - confidence) / 2) * *ratio.log_error : 0;
  ratio.low = ratio.ratio * std::exp(-half_width);
  ratio.high = ratio.ratio * std::exp(half_width);
}

double RatioP(const Ratio& ratio) {
  if (!ratio.log_error) return 1;
  const double log = std::log(ratio.ratio);
  if (log == 0) return 1;
  return *ratio.log_error > 0 ? 2 * StudentTail(ratio.degrees, std::abs(log) / *ratio.log_error) : 0;
}

std::optional<Ratio> UnpairedRatio(std::span<const double> values, std::span<const double> references,
                                   double confidence) {
  const auto over = OfLogs(values, confidence), under = OfLogs(references, confidence);
  if (!over || !under) return std::nullopt;
  const double difference = over->mean - under->mean;
  Ratio ratio{.n = std::min(over->n, under->n), .ratio = std::exp(difference)};
  if (ratio.n < 2) return ratio;
  const double a = *over->standard_error * *over->standard_error;
  const double b = *under->standard_error * *under->standard_error;
  if (a + b == 0) return ratio;
  const double degrees =
      (a + b) * (a + b) /
      (a * a / static_cast<double>(over->n - 1) + b * b / static_cast<double>(under->n - 1));
  ratio.log_error = std::sqrt(a + b);
  ratio.degrees = degrees;
  SetConfidence(confidence, ratio);
  return ratio;
}

std::optional<double> SmallestDifference(double deviation, int64_t n, double alpha, double power) {
  if (n < 2 || !std::isfinite(deviation)) return std::nullopt;
  const double detect = StudentT(1 - alpha, n - 1);
  const double reach = StudentT(2 * power - 1, n - 1);  // one-sided: of an interval with both tails 1 - power
  return (detect + reach) * deviation / std::sqrt(static_cast<double>(n));
}

}  // namespace weir::stats
