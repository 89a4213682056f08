#include "predict/validation/cross_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::predict {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Gt;

constexpr int kEach = 50;  // samples of each of two parts

// Samples of two parts; each candidate is off by the same in all samples of a part.
struct Off {
  double first = 0, second = 0;
};
CrossValidation Of(const std::vector<Off>& candidates) {
  CrossValidation validation;
  validation.measured.assign(2 * kEach, 0.0);
  validation.importance.assign(2 * kEach, 1.0);
  validation.recipes.resize(candidates.size());
  for (const Off& off : candidates) {
    std::vector<double>& predicted = validation.predicted.emplace_back(kEach, off.first);
    predicted.resize(2 * kEach, off.second);
  }
  return validation;
}

std::vector<double> Choose(const CrossValidation& validation, uint64_t seed = 1, int threads = 1) {
  std::vector<int> parts(kEach, 0);
  parts.resize(2 * kEach, 1);
  return ChooseMixture(validation, parts, {.threads = threads, .seed = Seed(seed)});
}

TEST(ScoreOf, CountsThreeTimesTooLongAsThreeTimesTooShort) {
  const std::vector<double> measured = {0, 0, 0}, same = {std::log(3), std::log(3), std::log(3)},
                            both = {std::log(3), -std::log(3), std::log(3)};
  EXPECT_NEAR(ScoreOf(both, measured).log_mean_percent, 200, 1e-9);
  EXPECT_EQ(ScoreOf(both, measured).log_mean_percent, ScoreOf(same, measured).log_mean_percent);
  EXPECT_NEAR(ScoreOf(both, measured).median_percent, 200, 1e-9);
  EXPECT_NEAR(ScoreOf(both, measured).mean_percent, 100 * (2 + 2 + 2.0 / 3) / 3, 1e-9);
}

TEST(ChooseMixture, TakesOneAloneThatIsBestInEveryPart) {
  EXPECT_THAT(Choose(Of({{0.3, 0.2}, {0.1, 0.1}, {0.2, 0.4}})), ElementsAre(0, 1, 0));
}

TEST(ChooseMixture, SharesBetweenTwoThatTheirPartsDisagreeOn) {
  const std::vector<double> weights = Choose(Of({{0.1, 0.3}, {0.31, 0.1}}));
  EXPECT_THAT(weights, ElementsAre(Gt(0.2), Gt(0.2)));
  EXPECT_THAT(weights[0] + weights[1], DoubleNear(1, 1e-12));
}

TEST(ChooseMixture, TakesTwoThatAreOffTheOtherWay) {
  EXPECT_THAT(Choose(Of({{0.2, 0.2}, {-0.2, -0.2}})),
              ElementsAre(DoubleNear(0.5, 0.1), DoubleNear(0.5, 0.1)));
}

TEST(ChooseMixture, IsTheSameForASeedWhateverTheThreads) {
  const CrossValidation validation = Of({{0.1, 0.3}, {0.31, 0.1}});
  EXPECT_EQ(Choose(validation, 1, 1), Choose(validation, 1, 3));
  EXPECT_NE(Choose(validation, 1), Choose(validation, 2));
}

}  // namespace
}  // namespace weir::predict
