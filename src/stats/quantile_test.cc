#include "stats/quantile.h"

#include <gtest/gtest.h>

namespace weir::stats {
namespace {

TEST(Supports, WantsTenValuesBeyondTheQuantile) {
  EXPECT_TRUE(Supports(0.5, 20));
  EXPECT_FALSE(Supports(0.5, 19));
  EXPECT_TRUE(Supports(0.9, 100));
  EXPECT_FALSE(Supports(0.9, 99));
  EXPECT_TRUE(Supports(0.99, 1'000));
  EXPECT_FALSE(Supports(0.99, 999));
  EXPECT_TRUE(Supports(0.999, 10'000));
  EXPECT_FALSE(Supports(0.999, 9'999));
  EXPECT_TRUE(Supports(0.99999, 1'000'000));
  EXPECT_FALSE(Supports(0.99999, 999'999));
}

TEST(Supports, HoldsOfLowQuantilesAsOfHighOnes) {
  EXPECT_TRUE(Supports(0.1, 100));
  EXPECT_FALSE(Supports(0.1, 99));
  EXPECT_TRUE(Supports(0.01, 1'000));
}

TEST(Supports, NeverTheEnds) {
  EXPECT_FALSE(Supports(0, 1'000'000));
  EXPECT_FALSE(Supports(1, 1'000'000));
}

TEST(NearestRank, RoundsUp) {
  EXPECT_EQ(NearestRank(0.5, 4), 2);
  EXPECT_EQ(NearestRank(0.5, 5), 3);
  EXPECT_EQ(NearestRank(0.99, 101), 100);
  EXPECT_EQ(NearestRank(0, 10), 1);
  EXPECT_EQ(NearestRank(1, 10), 10);
}

TEST(NearestRank, TakesAWholeProductAsItIs) {
  EXPECT_EQ(NearestRank(0.07, 100), 7);  // 0.07 * 100 is 7.000000000000001
  for (const int64_t n : {1'000, 1'000'000, 10'000'000}) {
    for (int64_t thousandth = 1; thousandth <= 1'000; ++thousandth) {
      ASSERT_EQ(NearestRank(static_cast<double>(thousandth) / 1'000, n), n / 1'000 * thousandth);
    }
  }
}

struct Case {
  double p;
  int64_t n;
  double confidence;
  int64_t low, high;
  double coverage;
};

// Binomial sums in exact fractions (Python).
TEST(QuantileRanks, AreThoseOfTheBinomialDistribution) {
  for (const Case& expected :
       {Case{0.5, 20, 0.95, 6, 15, 0.9586105346679688}, Case{0.5, 20, 0.99, 4, 17, 0.9974231719970703},
        Case{0.9, 100, 0.95, 84, 96, 0.955690107191223}, Case{0.9, 100, 0.99, 82, 98, 0.9934743611681155},
        Case{0.99, 1'000, 0.95, 983, 997, 0.9760947634979771},
        Case{0.99, 1'000, 0.99, 981, 998, 0.994032208218481}, Case{0.25, 40, 0.95, 5, 17, 0.9723963989802437},
        Case{0.25, 40, 0.99, 4, 18, 0.9906528515820598}}) {
    const auto ranks = QuantileRanks(expected.p, expected.n, expected.confidence);
    ASSERT_TRUE(ranks.has_value());
    EXPECT_EQ(ranks->low, expected.low);
    EXPECT_EQ(ranks->high, expected.high);
    EXPECT_NEAR(ranks->coverage, expected.coverage, 1e-12);
  }
}

TEST(QuantileRanks, MirrorAtTheMedian) {
  const auto high = QuantileRanks(0.75, 40, 0.95), low = QuantileRanks(0.25, 40, 0.95);
  ASSERT_TRUE(high && low);
  EXPECT_EQ(high->low, 41 - low->high);
  EXPECT_EQ(high->high, 41 - low->low);
}

TEST(QuantileRanks, CoverHardlyMoreThanAskedForAtLargeN) {
  for (const double p : {0.5, 0.99, 0.9999}) {
    const auto ranks = QuantileRanks(p, 10'000'000, 0.95);
    ASSERT_TRUE(ranks.has_value());
    EXPECT_GE(ranks->coverage, 0.95);
    EXPECT_LT(ranks->coverage, 0.952);
    EXPECT_LT(ranks->low, NearestRank(p, 10'000'000));
    EXPECT_GT(ranks->high, NearestRank(p, 10'000'000));
  }
}

// The greatest of n is over p90 with 1 - 0.9^n: 0.975 from 36 on, and p90 of so few has a lower rank too.
TEST(QuantileRanks, AreNotThereForTooFewValues) {
  EXPECT_FALSE(QuantileRanks(0.9, 35, 0.95).has_value());
  EXPECT_TRUE(QuantileRanks(0.9, 36, 0.95).has_value());
  EXPECT_FALSE(QuantileRanks(0.5, 5, 0.95).has_value());  // 1 - 2 / 2^5 = 0.9375
  EXPECT_TRUE(QuantileRanks(0.5, 6, 0.95).has_value());
  EXPECT_FALSE(QuantileRanks(0.5, 0, 0.95).has_value());
}

TEST(QuantileRanks, AreNotThereForWhatIsNoProbability) {
  EXPECT_FALSE(QuantileRanks(0, 100, 0.95).has_value());
  EXPECT_FALSE(QuantileRanks(1, 100, 0.95).has_value());
  EXPECT_FALSE(QuantileRanks(0.5, 100, 1).has_value());
}

}  // namespace
}  // namespace weir::stats
