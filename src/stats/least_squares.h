// Least squares by direct solution. Pure functions over numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace weir::stats {

// Row-major: values[row * columns + column].
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;

  static Matrix Zero(int64_t rows, int64_t columns);
  double& at(int64_t row, int64_t column) { return values[row * columns + column]; }
  double at(int64_t row, int64_t column) const { return values[row * columns + column]; }
};

// prediction(x) = intercepts + x * coefficients, for each target.
struct RidgeFit {
  Matrix coefficients;             // [columns of x, targets]
  std::vector<double> intercepts;  // one a target
  // [rows, targets]: what a fit without that row would predict for it, by the exact identity for linear
  // smoothers, residual / (1 - leverage) (Allen 1974, PRESS). A row the others say nothing of (leverage 1) is
  // NaN.
  Matrix left_out;
};

// Minimises |y - intercept - x w|^2 + penalty |w|^2, each column of y a target of its own. The intercept is
// not penalised; the columns of x are taken as they are, so put them on one scale first. kInvalidArgument for
// fewer than two rows, shapes that do not fit, a penalty that is not above 0, or values that are not finite.
Result<RidgeFit> FitRidge(const Matrix& x, const Matrix& y, double penalty);

}  // namespace weir::stats
