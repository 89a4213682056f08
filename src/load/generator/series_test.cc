#include "load/generator/series.h"

#include <gtest/gtest.h>

namespace weir::load {
namespace {

TEST(Series, HasSlicesOfAMillisecondAtFirst) {
  Series series;
  series.Add(0ns, 1);
  series.Add(999us, 2);
  series.Add(1ms, 4);
  ASSERT_EQ(series.slices().size(), 2u);
  EXPECT_EQ(series.slices()[0].count, 2);
  EXPECT_EQ(series.slices()[0].sum, 3);
  EXPECT_EQ(series.slices()[1].sum, 4);
}

TEST(Series, JoinsNeighboursAndLosesNothing) {
  Series series;
  const int seconds = 100'000;
  for (int i = 0; i < seconds; ++i) series.Add(std::chrono::seconds(i), i);
  EXPECT_LE(series.slices().size(), Series::kMost);
  EXPECT_GT(series.slices().size(), Series::kMost / 2);
  int64_t count = 0;
  double sum = 0;
  for (const Series::Slice& slice : series.slices()) count += slice.count, sum += slice.sum;
  EXPECT_EQ(count, seconds);
  EXPECT_EQ(sum, 0.5 * seconds * (seconds - 1));
  EXPECT_EQ(series.slices()[0].count,
            Seconds(series.width()) > 1 ? static_cast<int64_t>(Seconds(series.width())) + 1 : 1);
}

TEST(Series, TakesWhatComesOutOfOrder) {
  Series series;
  series.Add(10s, 1);
  series.Add(0s, 1);
  EXPECT_EQ(series.slices().front().count, 1);
  EXPECT_EQ(series.slices().back().count, 1);
}

}  // namespace
}  // namespace weir::load
