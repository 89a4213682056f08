// The summary of a few independent values. Pure functions over numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace weir::stats {

struct Summary {
  int64_t n = 0;
  double mean = 0;
  // The deviation of a sample, divided by n - 1; these four are absent for a single value.
  std::optional<double> standard_deviation;
  std::optional<double> standard_error;  // of the mean
  std::optional<double> low, high;       // Student's interval of the mean
  double median = 0;                     // the mean of the middle two for an even n
  double min = 0;
  double max = 0;
};

// In two passes. Nothing without values, or where one is not finite. confidence is in (0, 1).
std::optional<Summary> Summarise(std::span<const double> values, double confidence = 0.95);

// Half the width of an interval of that confidence in standard errors: 2.093 for 95 % and 19 degrees of
// freedom. confidence is in (0, 1), degrees are 1 or more.
double StudentT(double confidence, int64_t degrees);

}  // namespace weir::stats
