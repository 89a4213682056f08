#include "stats/steady_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/seed.h"

namespace weir::stats {
namespace {

std::vector<double> Series(int64_t n, auto value) {
  std::vector<double> series;
  for (int64_t i = 0; i < n; ++i) series.push_back(value(static_cast<double>(i)));
  return series;
}

// The cut by trying every one with sums of its own (Python).
TEST(Mser5, CutsTheStartOfADecayToASteadyWave) {
  const auto series = Series(
      203, [](double i) { return 10 * std::exp(-i / 12) + std::sin(1.7 * i) + 0.5 * std::cos(0.9 * i); });
  const auto truncation = Mser5(series);
  ASSERT_TRUE(truncation.has_value());
  EXPECT_EQ(truncation->cut, 50);
  EXPECT_TRUE(truncation->settled);
}

TEST(Mser5, CutsWhatComesBeforeAStep) {
  const auto truncation = Mser5(Series(100, [](double i) { return i < 18 ? 5.0 : 1.0; }));
  ASSERT_TRUE(truncation.has_value());
  EXPECT_EQ(truncation->cut, 20);  // the whole batch in which the step is
  EXPECT_TRUE(truncation->settled);
}

TEST(Mser5, CutsNothingOfWhatNeverChanges) {
  const auto truncation = Mser5(std::vector<double>(50, 0.1));
  ASSERT_TRUE(truncation.has_value());
  EXPECT_EQ(truncation->cut, 0);
  EXPECT_TRUE(truncation->settled);
}

TEST(Mser5, HasNotSettledWhereTheStepIsPastTheMiddleOrTheSeriesClimbs) {
  const auto late = Mser5(Series(200, [](double i) { return i < 120 ? 5.0 : 1.0; }));
  ASSERT_TRUE(late.has_value());
  EXPECT_FALSE(late->settled);
  EXPECT_LE(late->cut, 100);
  const auto climb = Mser5(Series(200, [](double i) { return i; }));
  ASSERT_TRUE(climb.has_value());
  EXPECT_FALSE(climb->settled);
}

TEST(Mser5, SettlesForMostSeriesOfPureNoise) {
  int settled = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    settled += Mser5(Series(500, [&](double) { return random.Normal(); }))->settled ? 1 : 0;
  }
  EXPECT_GE(settled, 90);
}

TEST(Mser5, SaysNothingBelowTenBatchesOrOfWhatIsNotFinite) {
  EXPECT_FALSE(Mser5(std::vector<double>(49, 1.0)).has_value());
  std::vector<double> series(50, 1.0);
  series[7] = NAN;
  EXPECT_FALSE(Mser5(series).has_value());
}

// Both by the definition with mid-ranks, the t distribution's tail by Simpson's rule (Python).
TEST(SpearmanTrend, GivesTheCorrelationAndItsProbability) {
  const auto ties = SpearmanTrend(std::vector<double>{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8});
  ASSERT_TRUE(ties.has_value());
  EXPECT_NEAR(ties->rho, 0.5265313520914636, 1e-12);
  EXPECT_NEAR(ties->p_value, 0.07863046813631858, 1e-9);
  const auto falls = SpearmanTrend(std::vector<double>{9.5, 9, 9.2, 8, 8.5, 7, 7.7, 6, 6.6, 5});
  ASSERT_TRUE(falls.has_value());
  EXPECT_NEAR(falls->rho, -0.9515151515151515, 1e-12);
  EXPECT_NEAR(falls->p_value, 2.2798549166e-05, 1e-9);
}

TEST(SpearmanTrend, IsOneOfWhatOnlyRises) {
  const auto trend = SpearmanTrend(Series(10, [](double i) { return std::exp(i); }));
  ASSERT_TRUE(trend.has_value());
  EXPECT_DOUBLE_EQ(trend->rho, 1);
  EXPECT_EQ(trend->p_value, 0);
}

TEST(SpearmanTrend, SaysNothingBelowTenValuesOrWhereAllAreEqual) {
  EXPECT_FALSE(SpearmanTrend(Series(9, [](double i) { return i; })).has_value());
  EXPECT_FALSE(SpearmanTrend(std::vector<double>(20, 3.0)).has_value());
  std::vector<double> values(20, 3.0);
  values[3] = INFINITY;
  EXPECT_FALSE(SpearmanTrend(values).has_value());
}

}  // namespace
}  // namespace weir::stats
