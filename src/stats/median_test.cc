#include "stats/median.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::stats {
namespace {

TEST(Median, IsTheUpperOfTheMiddleTwo) {
  EXPECT_EQ(Median(std::vector<int>{3, 1, 2}), 2);
  EXPECT_EQ(Median(std::vector<double>{4, 1, 3, 2}), 3);
}

TEST(WeightedQuantile, IsWhereThePartOfTheImportanceLies) {
  const std::vector<double> values = {3, 1, 2}, alike = {1, 1, 1}, one = {8, 1, 1};
  EXPECT_EQ(WeightedQuantile(values, alike, 0.5), 2);
  EXPECT_EQ(WeightedQuantile(values, one, 0.5), 3);
  EXPECT_EQ(WeightedQuantile(values, one, 0.1), 1);
  EXPECT_EQ(WeightedQuantile(values, one, 1.0), 3);
}

}  // namespace
}  // namespace weir::stats
