#include "stats/batch_means.h"

#include <algorithm>
#include <cmath>

#include "stats/summary.h"

namespace weir::stats {
namespace {

constexpr int64_t kLeastBatches = 10;
constexpr double kNormal95 = 1.6448536269514722;  // the normal distribution's 95 % quantile

std::optional<double> Lag1(std::span<const double> values, double mean) {
  double products = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) products += (values[i - 1] - mean) * (values[i] - mean);
  }
  return squares > 0 ? std::optional(products / squares) : std::nullopt;
}

}  // namespace

std::optional<MeanInterval> BatchMeans(std::span<const double> batch_means, double confidence) {
  if (std::ssize(batch_means) < kLeastBatches) return std::nullopt;
  const auto summary = Summarise(batch_means, confidence);
  if (!summary) return std::nullopt;

  const double n = static_cast<double>(summary->n);
  const std::optional<double> lag1 = Lag1(batch_means, summary->mean);
  const bool correlated = lag1 && *lag1 > kNormal95 / std::sqrt(n);
  const double effective_n = correlated ? n * (1 - *lag1) / (1 + *lag1) : n;
  const double standard_error = *summary->standard_deviation / std::sqrt(effective_n);
  const int64_t degrees = std::max<int64_t>(1, static_cast<int64_t>(effective_n) - 1);
  const double half_width = StudentT(confidence, degrees) * standard_error;
  return MeanInterval{.mean = summary->mean,
                      .low = summary->mean - half_width,
                      .high = summary->mean + half_width,
                      .standard_error = standard_error,
                      .lag1 = lag1,
                      .effective_n = effective_n,
                      .batches = summary->n};
}

}  // namespace weir::stats
