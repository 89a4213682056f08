#include "stats/line.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::stats {
namespace {

// By Python's statistics.linear_regression; the error by its formula, t of 3 degrees as in paired_test.cc.
TEST(FitLine, GivesTheNumbersWorkedOutElsewhere) {
  const auto line = FitLine(std::vector{0.0, 1.0, 2.0, 3.0, 4.5}, std::vector{2.1, 2.9, 4.2, 4.8, 6.9});
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->n, 5);
  EXPECT_NEAR(line->slope, 1.054098360655738, 1e-12);
  EXPECT_NEAR(line->intercept, 1.96639344262295, 1e-12);
  EXPECT_NEAR(*line->slope_error, 0.07248423268666938, 1e-12);
  EXPECT_NEAR(*line->low, 0.8234211821507225, 1e-9);
  EXPECT_NEAR(*line->high, 1.2847755391607534, 1e-9);
}

TEST(FitLine, ThroughTwoPointsHasNoError) {
  const auto line = FitLine(std::vector{1.0, 3.0}, std::vector{5.0, 9.0});
  EXPECT_DOUBLE_EQ(line->slope, 2);
  EXPECT_DOUBLE_EQ(line->intercept, 3);
  EXPECT_EQ(line->slope_error, std::nullopt);
}

TEST(FitLine, IsNoneUprightOrThroughOnePoint) {
  EXPECT_FALSE(FitLine(std::vector{1.0, 1.0}, std::vector{5.0, 9.0}));
  EXPECT_FALSE(FitLine(std::vector{1.0}, std::vector{5.0}));
  EXPECT_FALSE(FitLine(std::vector{1.0, 2.0}, std::vector{5.0}));
}

}  // namespace
}  // namespace weir::stats
