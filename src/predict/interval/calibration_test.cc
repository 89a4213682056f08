#include "predict/interval/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/seed.h"

namespace weir::predict {
namespace {

std::vector<LeftOut> Make(double common, double own, int groups, int rows) {
  std::vector<LeftOut> made;
  Random random(5);
  for (int g = 0; g < groups; ++g) {
    const double shift = common * random.Normal();
    for (int i = 0; i < rows; ++i)
      made.push_back({.group = std::to_string(g), .miss = shift + own * random.Normal()});
  }
  return made;
}

TEST(Calibration, FindsBothVariances) {
  const auto calibration = LearnCalibration(Make(0.2, 0.1, 400, 30));
  ASSERT_TRUE(calibration.has_value());
  EXPECT_NEAR(calibration->common, 0.2, 0.02);
  EXPECT_NEAR(calibration->own, 0.1, 0.005);
}

TEST(Calibration, RunsThatAgreeDecide) {
  const Calibration usual{.common = 0.03, .own = 0.1};
  const std::vector<double> slower(3, std::log(1.3));
  EXPECT_NEAR(std::exp(usual.Of(slower).log), 1.3, 0.02);
  EXPECT_LT(usual.Of(slower).variance, usual.Of({}).variance + 0.01);
}

TEST(Calibration, RunsThatDisagreeMoveLess) {
  const Calibration usual{.common = 0.03, .own = 0.1};
  const std::vector<double> apart = {0.5, -0.4, 0.2};
  EXPECT_LT(usual.Of(apart).log, 0.03);  // of a mean of 0.1
  EXPECT_GT(usual.Of(apart).variance, usual.Of({}).variance);
  EXPECT_EQ(usual.Of({}).log, 0);
}

TEST(Calibration, BelievesNoRunInAnotherUnit) {
  const Calibration usual{.common = 0.1, .own = 0.1}, wild{.common = 0.3, .own = 0.4};
  EXPECT_TRUE(usual.IsPlausible(-std::log(3.9)));
  EXPECT_FALSE(usual.IsPlausible(std::log(4.1)));
  EXPECT_TRUE(wild.IsPlausible(2.4));  // five times 0.5
  EXPECT_FALSE(wild.IsPlausible(-2.6));
}

TEST(Calibration, NeedsGroupsEnough) { EXPECT_FALSE(LearnCalibration(Make(0.2, 0.1, 2, 30)).has_value()); }

}  // namespace
}  // namespace weir::predict
