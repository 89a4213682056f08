#include "stats/least_squares.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace weir::stats {
namespace {

using Dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Dense> View(const Matrix& m) { return {m.values.data(), m.rows, m.columns}; }

Matrix ToMatrix(const Dense& m) { return {m.rows(), m.cols(), {m.data(), m.data() + m.size()}}; }

Status CheckShapes(const Matrix& x, const Matrix& y, double penalty) {
  const auto whole = [](const Matrix& m) {
    return m.rows >= 0 && m.columns >= 1 && std::ssize(m.values) == m.rows * m.columns;
  };
  if (!whole(x) || !whole(y) || x.rows != y.rows || x.rows < 2) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "ridge regression needs two or more rows and as many targets as rows, not {} x {} and {} x {}",
            x.rows, x.columns, y.rows, y.columns));
  }
  if (!(penalty > 0) || !std::isfinite(penalty)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the penalty of a ridge regression must be above 0, not {}", penalty));
  }
  if (!View(x).allFinite() || !View(y).allFinite()) {
    return Fail(ErrorCode::kInvalidArgument, "ridge regression needs finite numbers");
  }
  return {};
}

// The result of both ways of solving: the coefficients, and the leverage of each row without the intercept's
// 1 / rows.
struct Solution {
  Dense coefficients;
  Eigen::VectorXd leverage;
};

// (X'X + penalty) w = X'y: a system as large as the columns.
Solution SolveByColumns(const Dense& x, const Dense& y, double penalty) {
  Dense gram = x.transpose() * x;
  gram.diagonal().array() += penalty;
  const Eigen::LLT<Dense> cholesky(gram);
  const Eigen::MatrixXd half = cholesky.matrixL().solve(x.transpose());  // row's leverage = |L^-1 x|^2
  return {cholesky.solve(x.transpose() * y), half.colwise().squaredNorm().transpose()};
}

// w = X'(XX' + penalty)^-1 y: the same by a system as large as the rows.
Solution SolveByRows(const Dense& x, const Dense& y, double penalty) {
  Dense kernel = x * x.transpose();
  kernel.diagonal().array() += penalty;
  const Eigen::LLT<Dense> cholesky(kernel);
  const Dense inverse = cholesky.solve(Dense::Identity(x.rows(), x.rows()));
  return {x.transpose() * (inverse * y), (1 - penalty * inverse.diagonal().array()).matrix()};
}

}  // namespace

Matrix Matrix::Zero(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns), 0.0)};
}

Result<RidgeFit> FitRidge(const Matrix& x, const Matrix& y, double penalty) {
  TRY_STATUS(CheckShapes(x, y, penalty));
  const Eigen::RowVectorXd x_mean = View(x).colwise().mean();
  const Eigen::RowVectorXd y_mean = View(y).colwise().mean();
  const Dense x_centred = View(x).rowwise() - x_mean;
  const Dense y_centred = View(y).rowwise() - y_mean;
  const Solution solution = x.columns <= x.rows ? SolveByColumns(x_centred, y_centred, penalty)
                                                : SolveByRows(x_centred, y_centred, penalty);

  const Eigen::RowVectorXd intercepts = y_mean - x_mean * solution.coefficients;
  const Dense residuals = y_centred - x_centred * solution.coefficients;
  Dense left_out = View(y);
  for (int64_t row = 0; row < x.rows; ++row) {
    const double rest = 1 - 1.0 / static_cast<double>(x.rows) - solution.leverage[row];
    if (rest > 1e-12) {
      left_out.row(row) -= residuals.row(row) / rest;
    } else {
      left_out.row(row).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return RidgeFit{.coefficients = ToMatrix(solution.coefficients),
                  .intercepts = {intercepts.data(), intercepts.data() + intercepts.size()},
                  .left_out = ToMatrix(left_out)};
}

}  // namespace weir::stats
