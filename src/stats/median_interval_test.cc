#include "stats/median_interval.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::stats {
namespace {

// The binomial sums by Python: 1 - 2 * sum(comb(20, k) for k in range(6)) / 2**20.
TEST(FindMedian, EnclosesThatOfTwentyByTheSixthAndTheFifteenth) {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back((7 * i) % 20 + 1);  // 1 to 20 in disorder
  const auto median = FindMedian(values);
  ASSERT_TRUE(median.has_value());
  EXPECT_EQ(median->median, 10.5);
  EXPECT_EQ(median->low, 6);
  EXPECT_EQ(median->high, 15);
  EXPECT_NEAR(*median->coverage, 0.9586105346679688, 1e-12);
}

TEST(FindMedian, OfSixIsEnclosedByLeastAndGreatest) {
  const auto median = FindMedian(std::vector{3.0, 1.0, 2.0, 6.0, 5.0, 4.0});
  EXPECT_EQ(median->low, 1);
  EXPECT_EQ(median->high, 6);
  EXPECT_NEAR(*median->coverage, 0.96875, 1e-12);  // 1 - 2 / 2^6
}

TEST(FindMedian, OfFiveHasNoInterval) {
  const auto median = FindMedian(std::vector{3.0, 1.0, 2.0, 5.0, 4.0});
  EXPECT_EQ(median->median, 3);
  EXPECT_EQ(median->low, std::nullopt);
  EXPECT_EQ(median->high, std::nullopt);
  EXPECT_EQ(median->coverage, std::nullopt);
}

TEST(FindMedian, OfNothingIsNothing) { EXPECT_FALSE(FindMedian({})); }

}  // namespace
}  // namespace weir::stats
