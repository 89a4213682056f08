#include "stats/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::stats {
namespace {

// The expected numbers by Python's statistics, t by Simpson's rule.
TEST(Summarise, GivesTheNumbersWorkedOutElsewhere) {
  const auto summary = Summarise(std::vector{2.1, 3.4, 1.9, 5.6, 4.4, 3.8, 2.7});
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->n, 7);
  EXPECT_NEAR(summary->mean, 3.414285714285714, 1e-12);
  EXPECT_NEAR(*summary->standard_deviation, 1.3183683999911548, 1e-12);
  EXPECT_NEAR(*summary->standard_error, 0.4982964175346749, 1e-12);
  EXPECT_NEAR(*summary->low, 2.194998304837848, 1e-9);
  EXPECT_NEAR(*summary->high, 4.63357312373358, 1e-9);
  EXPECT_EQ(summary->median, 3.4);
  EXPECT_EQ(summary->min, 1.9);
  EXPECT_EQ(summary->max, 5.6);
}

TEST(Summarise, TakesTheMeanOfTheMiddleTwoForTheMedian) {
  EXPECT_EQ(Summarise(std::vector{4.0, 1.0, 3.0, 100.0})->median, 3.5);
}

TEST(Summarise, LosesNoDigitsToALargeMean) {
  const auto summary = Summarise(std::vector{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16});
  EXPECT_DOUBLE_EQ(*summary->standard_deviation, std::sqrt(30.0));
}

TEST(Summarise, KnowsNoDeviationOfASingleValue) {
  const auto summary = Summarise(std::vector{3.5});
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->mean, 3.5);
  EXPECT_EQ(summary->median, 3.5);
  EXPECT_EQ(summary->standard_deviation, std::nullopt);
  EXPECT_EQ(summary->standard_error, std::nullopt);
  EXPECT_EQ(summary->low, std::nullopt);
  EXPECT_EQ(summary->high, std::nullopt);
}

TEST(Summarise, GivesEqualValuesNoDeviationAtAll) {
  const auto summary = Summarise(std::vector<double>(10, 0.1));  // ten of these sum to less than 1
  EXPECT_EQ(summary->mean, 0.1);
  EXPECT_EQ(summary->standard_deviation, 0.0);
}

TEST(Summarise, SaysNothingWithoutValuesOrOfWhatIsNotFinite) {
  EXPECT_FALSE(Summarise({}).has_value());
  EXPECT_FALSE(Summarise(std::vector<double>{1, INFINITY}).has_value());
}

// Any printed table of Student's t.
TEST(StudentT, IsThatOfTheTables) {
  EXPECT_NEAR(StudentT(0.95, 1), 12.706, 0.0005);
  EXPECT_NEAR(StudentT(0.95, 9), 2.262, 0.0005);
  EXPECT_NEAR(StudentT(0.95, 19), 2.093, 0.0005);
  EXPECT_NEAR(StudentT(0.99, 19), 2.861, 0.0005);
  EXPECT_NEAR(StudentT(0.95, 1'000'000), 1.960, 0.0005);
}

}  // namespace
}  // namespace weir::stats
