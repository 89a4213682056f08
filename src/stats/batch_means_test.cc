#include "stats/batch_means.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::stats {
namespace {

// The expected numbers by Python's statistics, t by Simpson's rule.
TEST(BatchMeans, GivesStudentsIntervalOfBatchesThatAreNotCorrelated) {
  const auto interval =
      BatchMeans(std::vector<double>{10.2, 9.8, 10.1, 9.9, 10.4, 9.6, 10.3, 9.7, 10.0, 10.1, 9.9, 10.0});
  ASSERT_TRUE(interval.has_value());
  EXPECT_EQ(interval->batches, 12);
  EXPECT_NEAR(interval->mean, 10, 1e-12);
  EXPECT_NEAR(*interval->lag1, -0.7903225806451615, 1e-9);
  EXPECT_EQ(interval->effective_n, 12);
  EXPECT_NEAR(interval->standard_error, 0.06853444168423423, 1e-9);
  EXPECT_NEAR(interval->low, 9.849156710897955, 1e-9);
  EXPECT_NEAR(interval->high, 10.150843289102045, 1e-9);
}

TEST(BatchMeans, WidensTheIntervalOfBatchesThatAre) {
  const auto interval = BatchMeans(
      std::vector<double>{8, 8.5, 9, 9.2, 9.9, 10.3, 10.1, 10.8, 11, 11.2, 10.9, 10.5, 9.9, 9.4, 9.1, 8.8});
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(*interval->lag1, 0.75030053428317, 1e-9);
  EXPECT_NEAR(interval->effective_n, 2.2825745483220676, 1e-9);
  EXPECT_NEAR(interval->standard_error, 0.6403048183086992, 1e-9);
  EXPECT_NEAR(interval->low, 1.6516558850114365, 1e-7);
  EXPECT_NEAR(interval->high, 17.923344114988563, 1e-7);
}

TEST(BatchMeans, KnowsNoCorrelationOfWhatNeverChanges) {
  const auto interval = BatchMeans(std::vector<double>(10, 0.1));
  ASSERT_TRUE(interval.has_value());
  EXPECT_EQ(interval->lag1, std::nullopt);
  EXPECT_EQ(interval->low, 0.1);
  EXPECT_EQ(interval->high, 0.1);
}

TEST(BatchMeans, SaysNothingBelowTenBatchesOrOfWhatIsNotFinite) {
  EXPECT_FALSE(BatchMeans(std::vector<double>(9, 1.0)).has_value());
  std::vector<double> means(12, 1.0);
  means[2] = NAN;
  EXPECT_FALSE(BatchMeans(means).has_value());
}

}  // namespace
}  // namespace weir::stats
