#include "predict/interval/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/seed.h"

namespace weir::predict {
namespace {

struct Made {
  std::vector<double> misses;
  std::vector<std::string> groups;
};

Made Make(double common, double own, int groups, int rows) {
  Made made;
  Random random(5);
  for (int g = 0; g < groups; ++g) {
    const double shift = common * random.Normal();
    for (int i = 0; i < rows; ++i) {
      made.misses.push_back(shift + own * random.Normal());
      made.groups.push_back(std::to_string(g));
    }
  }
  return made;
}

TEST(Calibration, FindsBothVariances) {
  const Made made = Make(0.2, 0.1, 400, 30);
  const auto calibration = LearnCalibration(made.misses, made.groups);
  ASSERT_TRUE(calibration.has_value());
  EXPECT_NEAR(calibration->common, 0.2, 0.02);
  EXPECT_NEAR(calibration->own, 0.1, 0.005);
  EXPECT_NEAR(calibration->k, 0.25, 0.06);
  EXPECT_TRUE(calibration->helps());
}

TEST(Calibration, IsNotUsedWhereNothingIsCommon) {
  const Made made = Make(0, 0.2, 200, 30);
  const auto calibration = LearnCalibration(made.misses, made.groups);
  ASSERT_TRUE(calibration.has_value());
  EXPECT_GT(calibration->k, 20);
  EXPECT_FALSE(calibration->helps());
}

TEST(Calibration, BelievesARunInPartAndManyNearlyWhole) {
  const Calibration calibration{.k = 2, .common = 0.1, .own = std::sqrt(0.02)};
  const std::vector<double> one = {0.3}, many(98, 0.3);
  EXPECT_NEAR(calibration.Shift(one), 0.1, 1e-12);     // 1 / (1 + 2)
  EXPECT_NEAR(calibration.Shift(many), 0.294, 1e-12);  // 98 / 100
  EXPECT_EQ(calibration.Shift({}), 0);
  EXPECT_NEAR(calibration.Narrower(0), 1, 1e-12);
  EXPECT_NEAR(calibration.Narrower(2), std::sqrt((0.005 + 0.02) / 0.03), 1e-12);
}

TEST(Calibration, BelievesRunsThatNoOtherHardwareExplains) {
  const Calibration usual{.k = 14, .common = 0.05, .own = 0.18};
  const std::vector<double> near = {0.2, 0.1, 0.3}, far = {0.8, 0.7, 0.9};
  EXPECT_EQ(usual.For(near).k, usual.k);
  const Calibration other = usual.For(far);
  EXPECT_NEAR(other.Shift(far), 0.8, 0.02);
  EXPECT_GT(other.Narrower(3) * std::hypot(other.common, other.own), std::hypot(usual.common, usual.own));
}

TEST(Calibration, BelievesNoRunInAnotherUnit) {
  const Calibration usual{.k = 2, .common = 0.1, .own = 0.1}, wild{.k = 2, .common = 0.3, .own = 0.4};
  EXPECT_TRUE(usual.IsPlausible(-std::log(3.9)));
  EXPECT_FALSE(usual.IsPlausible(std::log(4.1)));
  EXPECT_TRUE(wild.IsPlausible(2.4));  // five times 0.5
  EXPECT_FALSE(wild.IsPlausible(-2.6));
}

TEST(Calibration, NeedsGroupsEnough) {
  const Made made = Make(0.2, 0.1, 2, 30);
  EXPECT_FALSE(LearnCalibration(made.misses, made.groups).has_value());
}

}  // namespace
}  // namespace weir::predict
