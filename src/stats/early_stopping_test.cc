#include "stats/early_stopping.h"

#include <gtest/gtest.h>

namespace weir::stats {
namespace {

// By binomial sums over logarithms of factorials (Python).
TEST(QueriesNeeded, AreThoseOfMLPerf) {
  EXPECT_EQ(QueriesNeeded(0.9, 0), 44);
  EXPECT_EQ(QueriesNeeded(0.9, 1), 64);
  EXPECT_EQ(QueriesNeeded(0.9, 10), 197);
  EXPECT_EQ(QueriesNeeded(0.99, 0), 459);
  EXPECT_EQ(QueriesNeeded(0.99, 1), 662);
  EXPECT_EQ(QueriesNeeded(0.99, 10), 2010);
  EXPECT_EQ(QueriesNeeded(0.999, 0), 4603);
  EXPECT_EQ(QueriesNeeded(0.999, 1), 6636);
  EXPECT_EQ(QueriesNeeded(0.999, 10), 20140);
}

TEST(QueriesNeeded, AreTheFewestThatSayYes) {
  for (const int64_t over : {0, 3, 100, 5'000}) {
    const int64_t needed = QueriesNeeded(0.95, over);
    EXPECT_EQ(QuantileIsBelow(0.95, needed, over), Answer::kYes);
    EXPECT_NE(QuantileIsBelow(0.95, needed - 1, over), Answer::kYes);
  }
}

// Binomial sums in exact fractions (Python): at most 3 of 100 over with 0.0078, 19 or more with 0.0046.
TEST(QuantileIsBelow, SaysYesOrNoOnlyWhereATestRejects) {
  EXPECT_EQ(QuantileIsBelow(0.9, 100, 0), Answer::kYes);
  EXPECT_EQ(QuantileIsBelow(0.9, 100, 3), Answer::kYes);
  EXPECT_EQ(QuantileIsBelow(0.9, 100, 4), Answer::kUndecided);
  EXPECT_EQ(QuantileIsBelow(0.9, 100, 18), Answer::kUndecided);
  EXPECT_EQ(QuantileIsBelow(0.9, 100, 19), Answer::kNo);
  EXPECT_EQ(QuantileIsBelow(0.9, 100, 100), Answer::kNo);
}

TEST(QuantileIsBelow, IsUndecidedWithoutSamples) {
  EXPECT_EQ(QuantileIsBelow(0.9, 0, 0), Answer::kUndecided);
  EXPECT_EQ(QuantileIsBelow(0.9, 1, 1), Answer::kUndecided);
}

// By binomial sums in exact fractions (Python).
TEST(EstimateRank, IsTheLeastUpperConfidenceBound) {
  EXPECT_EQ(EstimateRank(0.9, 43), std::nullopt);
  EXPECT_EQ(EstimateRank(0.9, 44), 44);
  EXPECT_EQ(EstimateRank(0.9, 63), 63);
  EXPECT_EQ(EstimateRank(0.9, 64), 63);
  EXPECT_EQ(EstimateRank(0.9, 197), 187);
  EXPECT_EQ(EstimateRank(0.9, 1'024), 944);
  EXPECT_EQ(EstimateRank(0.99, 458), std::nullopt);
  EXPECT_EQ(EstimateRank(0.99, 1'000), 998);
  EXPECT_EQ(EstimateRank(0.9, 0), std::nullopt);
}

TEST(EstimateRank, LeavesAsManyOverAsTheSamplesAreEnoughFor) {
  for (const int64_t n : {5'000, 270'336, 10'000'000}) {
    const auto rank = EstimateRank(0.99, n);
    ASSERT_TRUE(rank.has_value());
    EXPECT_LE(QueriesNeeded(0.99, n - *rank), n);
    EXPECT_GT(QueriesNeeded(0.99, n - *rank + 1), n);
  }
}

}  // namespace
}  // namespace weir::stats
