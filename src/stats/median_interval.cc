#include "stats/median_interval.h"

#include <algorithm>
#include <vector>

#include "stats/quantile.h"
#include "stats/summary.h"

namespace weir::stats {

std::optional<MedianInterval> FindMedian(std::span<const double> values, double confidence) {
  const auto summary = Summarise(values, confidence);
  if (!summary) return std::nullopt;
  MedianInterval interval{.median = summary->median};
  const auto ranks = QuantileRanks(0.5, summary->n, confidence);
  if (!ranks) return interval;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  interval.low = sorted[static_cast<size_t>(ranks->low - 1)];
  interval.high = sorted[static_cast<size_t>(ranks->high - 1)];
  interval.coverage = ranks->coverage;
  return interval;
}

}  // namespace weir::stats
