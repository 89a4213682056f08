// The median of a few independent values and where the true one lies, whatever their distribution. Pure.
#pragma once

#include <optional>
#include <span>

namespace weir::stats {

struct MedianInterval {
  double median = 0;  // the mean of the middle two for an even n
  // Order statistics that enclose the true median with the probability `coverage`, which is at least what was
  // asked for (QuantileRanks): of 20 values the 6th and the 15th, 95.9 %. Nothing where there are too few
  // values: at 95 % six are needed.
  std::optional<double> low, high, coverage;
};

// Nothing without values, or where one is not finite. confidence is in (0, 1).
std::optional<MedianInterval> FindMedian(std::span<const double> values, double confidence = 0.95);

}  // namespace weir::stats
