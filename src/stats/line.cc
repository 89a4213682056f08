#include "stats/line.h"

#include <cmath>

#include "stats/summary.h"

namespace weir::stats {

std::optional<Line> FitLine(std::span<const double> x, std::span<const double> y, double confidence) {
  const auto xs = Summarise(x), ys = Summarise(y);
  if (!xs || !ys || xs->n != ys->n || xs->n < 2 || xs->min == xs->max) return std::nullopt;
  double squares = 0, products = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    squares += (x[i] - xs->mean) * (x[i] - xs->mean);
    products += (x[i] - xs->mean) * (y[i] - ys->mean);
  }
  Line line{.n = xs->n, .slope = products / squares};
  line.intercept = ys->mean - line.slope * xs->mean;
  if (line.n < 3) return line;
  double residuals = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double residual = y[i] - line.intercept - line.slope * x[i];
    residuals += residual * residual;
  }
  line.slope_error = std::sqrt(residuals / static_cast<double>(line.n - 2) / squares);
  const double half_width = StudentT(confidence, line.n - 2) * *line.slope_error;
  line.low = line.slope - half_width;
  line.high = line.slope + half_width;
  return line;
}

}  // namespace weir::stats
