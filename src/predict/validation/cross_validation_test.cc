#include "predict/validation/cross_validation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::predict {
namespace {

TEST(ScoreOf, CountsThreeTimesTooLongAsThreeTimesTooShort) {
  const std::vector<double> measured = {0, 0, 0}, same = {std::log(3), std::log(3), std::log(3)},
                            both = {std::log(3), -std::log(3), std::log(3)};
  EXPECT_NEAR(ScoreOf(both, measured).log_mean_percent, 200, 1e-9);
  EXPECT_EQ(ScoreOf(both, measured).log_mean_percent, ScoreOf(same, measured).log_mean_percent);
  EXPECT_NEAR(ScoreOf(both, measured).median_percent, 200, 1e-9);
  EXPECT_NEAR(ScoreOf(both, measured).mean_percent, 100 * (2 + 2 + 2.0 / 3) / 3, 1e-9);
}

}  // namespace
}  // namespace weir::predict
