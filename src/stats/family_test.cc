#include "stats/family.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "stats/paired.h"

namespace weir::stats {
namespace {

// statsmodels 0.15: multipletests([0.01, 0.04, 0.03, 0.005, 0.6], method="holm")[1]
TEST(HolmAdjust, GivesTheNumbersOfStatsmodels) {
  const std::vector<double> adjusted = HolmAdjust(std::vector{0.01, 0.04, 0.03, 0.005, 0.6});
  const std::vector<double> expected{0.04, 0.09, 0.09, 0.025, 0.6};
  ASSERT_EQ(adjusted.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << i;
}

TEST(HolmAdjust, TakesAnEmptyFamilyAndNeverExceedsOne) {
  EXPECT_TRUE(HolmAdjust({}).empty());
  EXPECT_EQ(HolmAdjust(std::vector{0.9, 0.8}), (std::vector{1.0, 1.0}));
}

// scipy 1.17: 2 * stats.t.sf(2.5, 7); stats.ttest_1samp([0.02, -0.01, 0.03, 0.05, 0.01, 0.04], 0).pvalue
TEST(StudentP, GivesTheNumbersOfScipy) {
  EXPECT_NEAR(StudentP(2.5, 7), 0.04099221858575289, 1e-12);
  EXPECT_NEAR(StudentP(-2.5, 7), 0.04099221858575289, 1e-12);
  EXPECT_NEAR(PairedP(std::vector{0.02, -0.01, 0.03, 0.05, 0.01, 0.04}), 0.04565912378141167, 1e-9);
}

TEST(PairedP, IsOneWithoutEvidenceAndZeroWithoutSpread) {
  EXPECT_EQ(PairedP(std::vector{0.3}), 1);
  EXPECT_EQ(PairedP(std::vector{0.0, 0.0}), 1);
  EXPECT_EQ(PairedP(std::vector{0.25, 0.25}), 0);
}

TEST(DifferenceLimit, TakesTheFartherEndAsAFactor) {
  EXPECT_NEAR(DifferenceLimit(0.99, 1.02), 0.02, 1e-12);
  EXPECT_NEAR(DifferenceLimit(0.8, 1.1), 0.25, 1e-12);
}

// The log ratios of one study: `repeats` blocks, two trials each, with a coefficient of variation of 2 %.
std::vector<double> SimulateStudy(std::mt19937_64& random, double factor, int repeats) {
  std::normal_distribution<double> noise(0, 0.02);
  std::vector<double> logs;
  for (int i = 0; i < repeats; ++i) logs.push_back(std::log(factor) + noise(random) - noise(random));
  return logs;
}

TEST(PairedP, ShowsNoDifferenceInAtLeast930Of1000StudiesOfAFactorThatDoesNothing) {
  std::mt19937_64 random(1);
  int none = 0, excluded = 0;
  for (int study = 0; study < 1000; ++study) {
    const std::vector<double> logs = SimulateStudy(random, 1, 20);
    none += PairedP(logs) > 0.05;
    const auto ratio = RatioOfLogs(logs);
    excluded += *ratio->low > 1 || *ratio->high < 1;
  }
  EXPECT_GE(none, 930);
  EXPECT_EQ(excluded, 1000 - none);  // the interval and the test are the same statement
}

TEST(HolmAdjust, KeepsAFamilyOfTenThatDoNothingFreeOfFindingsIn930Of1000Studies) {
  std::mt19937_64 random(2);
  int clean = 0;
  for (int study = 0; study < 1000; ++study) {
    std::vector<double> p;
    for (int i = 0; i < 10; ++i) p.push_back(PairedP(SimulateStudy(random, 1, 20)));
    bool any = false;
    for (const double adjusted : HolmAdjust(p)) any = any || adjusted <= 0.05;
    clean += !any;
  }
  EXPECT_GE(clean, 930);
}

TEST(PairedP, FindsASlowdownOf3PercentInAtLeast80Of100Studies) {
  std::mt19937_64 random(3);
  int found = 0;
  for (int study = 0; study < 100; ++study) {
    const auto ratio = RatioOfLogs(SimulateStudy(random, 1 / 1.03, 20));
    found += *ratio->high < 1;
  }
  EXPECT_GE(found, 80);
}

}  // namespace
}  // namespace weir::stats
