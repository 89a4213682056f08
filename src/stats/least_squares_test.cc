#include "stats/least_squares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/seed.h"

namespace weir::stats {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// x = 1, 2, 3, 6 and y = 2, 4, 6, 8: means 3 and 5, sum of squares of x about its mean 14, of products 16.
Matrix X() { return {4, 1, {1, 2, 3, 6}}; }
Matrix Y() { return {4, 1, {2, 4, 6, 8}}; }

Matrix Random(int64_t rows, int64_t columns, uint64_t seed) {
  Matrix matrix = Matrix::Zero(rows, columns);
  weir::Random random(seed);
  for (double& value : matrix.values) value = random.Normal();
  return matrix;
}

Matrix WithoutRow(const Matrix& matrix, int64_t row) {
  Matrix rest{matrix.rows - 1, matrix.columns, matrix.values};
  const auto begin = rest.values.begin() + row * matrix.columns;
  rest.values.erase(begin, begin + matrix.columns);
  return rest;
}

double Predict(const RidgeFit& fit, const Matrix& x, int64_t row, int64_t target) {
  double sum = fit.intercepts[target];
  for (int64_t c = 0; c < x.columns; ++c) sum += x.at(row, c) * fit.coefficients.at(c, target);
  return sum;
}

TEST(FitRidge, GivesTheSlopeWorkedOutByHand) {
  const auto fit = FitRidge(X(), Y(), 2);
  ASSERT_TRUE(fit.has_value());
  EXPECT_DOUBLE_EQ(fit->coefficients.at(0, 0), 1.0);  // 16 / (14 + 2)
  EXPECT_THAT(fit->intercepts, ElementsAre(DoubleNear(2.0, 1e-12)));
}

TEST(FitRidge, WithHardlyAnyPenaltyIsOrdinaryLeastSquares) {
  const auto fit = FitRidge(X(), Y(), 1e-12);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->coefficients.at(0, 0), 16.0 / 14.0, 1e-9);
  EXPECT_NEAR(fit->intercepts[0], 5 - 3 * 16.0 / 14.0, 1e-9);
}

TEST(FitRidge, PredictsARowLeftOutAsAFitWithoutItDoes) {
  for (const int64_t columns : {3, 12}) {  // fewer columns than rows, and more
    const Matrix x = Random(7, columns, 1), y = Random(7, 2, 2);
    const auto all = FitRidge(x, y, 0.5);
    ASSERT_TRUE(all.has_value());
    for (int64_t row = 0; row < x.rows; ++row) {
      const auto without = FitRidge(WithoutRow(x, row), WithoutRow(y, row), 0.5);
      ASSERT_TRUE(without.has_value());
      for (int64_t target = 0; target < 2; ++target) {
        EXPECT_NEAR(all->left_out.at(row, target), Predict(*without, x, row, target), 1e-9);
      }
    }
  }
}

TEST(FitRidge, SaysNothingOfARowThatOnlyItselfTellsOf) {
  const auto fit = FitRidge({3, 1, {0, 0, 1e9}}, {3, 1, {1, 2, 3}}, 1e-9);
  ASSERT_TRUE(fit.has_value());
  EXPECT_TRUE(std::isnan(fit->left_out.at(2, 0)));
}

TEST(FitRidge, RefusesWhatHasNoAnswer) {
  const auto code = [](const Matrix& x, const Matrix& y, double penalty) {
    const auto fit = FitRidge(x, y, penalty);
    return fit ? std::optional<ErrorCode>() : fit.error().code;
  };
  EXPECT_EQ(code(X(), Y(), 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(X(), {3, 1, {1, 2, 3}}, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({1, 1, {1}}, {1, 1, {1}}, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({4, 1, {1, 2, 3}}, Y(), 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({4, 1, {1, 2, 3, NAN}}, Y(), 1), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::stats
