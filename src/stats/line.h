// A straight line through a few points. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace weir::stats {

struct Line {
  int64_t n = 0;
  double intercept = 0;
  double slope = 0;
  std::optional<double> slope_error;  // standard error; nothing for two points
  std::optional<double> low, high;    // Student's interval of the slope, n - 2 degrees
};

// Least squares (Draper and Smith, Applied Regression Analysis, 1998, chapter 1). Nothing below two points,
// where the lengths differ, all x are equal, or a value is not finite. confidence is in (0, 1).
std::optional<Line> FitLine(std::span<const double> x, std::span<const double> y, double confidence = 0.95);

}  // namespace weir::stats
