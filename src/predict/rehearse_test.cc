#include "predict/rehearse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace weir::predict {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Gt;

constexpr int kEach = 50;  // samples of each of two parts

// Of two parts; each candidate is off by the same in all samples of a part.
struct Off {
  double first = 0, second = 0;
};
Rehearsal Of(const std::vector<Off>& candidates) {
  Rehearsal rehearsal;
  rehearsal.measured.assign(2 * kEach, 0.0);
  rehearsal.importance.assign(2 * kEach, 1.0);
  rehearsal.recipes.resize(candidates.size());
  for (const Off& off : candidates) {
    std::vector<double>& predicted = rehearsal.predicted.emplace_back(kEach, off.first);
    predicted.resize(2 * kEach, off.second);
  }
  return rehearsal;
}

std::vector<double> Choose(const Rehearsal& rehearsal, uint64_t seed = 1, int threads = 1) {
  std::vector<int> parts(kEach, 0);
  parts.resize(2 * kEach, 1);
  return ChooseMixture(rehearsal, [](const Recipe& recipe) { return recipe.base == Recipe::Base::kPhysical; },
                       parts, {.threads = threads, .seed = Seed(seed)});
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

TEST(ChooseMixture, LeavesOutWhatIsNotAllowed) {
  Rehearsal rehearsal = Of({{0.3, 0.3}, {0.0, 0.0}});
  rehearsal.recipes[1].base = Recipe::Base::kLinear;
  EXPECT_THAT(Choose(rehearsal), ElementsAre(1, 0));
}

TEST(ChooseMixture, IsTheSameForASeedWhateverTheThreads) {
  const Rehearsal rehearsal = Of({{0.1, 0.3}, {0.31, 0.1}});
  EXPECT_EQ(Choose(rehearsal, 1, 1), Choose(rehearsal, 1, 3));
  EXPECT_NE(Choose(rehearsal, 1), Choose(rehearsal, 2));
}

}  // namespace
}  // namespace weir::predict
