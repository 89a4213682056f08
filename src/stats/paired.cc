#include "stats/paired.h"

#include <cmath>
#include <vector>

#include "stats/summary.h"

namespace weir::stats {

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
  return ratio;
}

std::optional<double> SmallestDifference(double deviation, int64_t n, double alpha, double power) {
  if (n < 2 || !std::isfinite(deviation)) return std::nullopt;
  const double detect = StudentT(1 - alpha, n - 1);
  const double reach = StudentT(2 * power - 1, n - 1);  // one-sided: of an interval with both tails 1 - power
  return (detect + reach) * deviation / std::sqrt(static_cast<double>(n));
}

}  // namespace weir::stats
