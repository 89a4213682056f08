#include "stats/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stats/distributions.h"

namespace weir::stats {
namespace {

double MedianOfSorted(const std::vector<double>& sorted) {
  const size_t upper = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[upper] : std::midpoint(sorted[upper - 1], sorted[upper]);
}

}  // namespace

std::optional<Summary> Summarise(std::span<const double> values, double confidence) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (values.empty() || !std::ranges::all_of(values, is_finite)) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);

  const double n = static_cast<double>(values.size());
  // Rounding may carry the mean of values that are all but equal out of their range.
  const double mean =
      std::clamp(std::accumulate(values.begin(), values.end(), 0.0) / n, sorted.front(), sorted.back());
  Summary summary{.n = std::ssize(values),
                  .mean = mean,
                  .median = MedianOfSorted(sorted),
                  .min = sorted.front(),
                  .max = sorted.back()};
  if (summary.n < 2) return summary;

  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  summary.standard_deviation = std::sqrt(squares / (n - 1));
  summary.standard_error = *summary.standard_deviation / std::sqrt(n);
  const double half_width = StudentT(confidence, summary.n - 1) * *summary.standard_error;
  summary.low = mean - half_width;
  summary.high = mean + half_width;
  return summary;
}

double StudentT(double confidence, int64_t degrees) {
  return StudentQuantile(static_cast<double>(degrees), (1 - confidence) / 2);
}

}  // namespace weir::stats
