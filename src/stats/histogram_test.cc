#include "stats/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/seed.h"

namespace weir::stats {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

constexpr int64_t kHour = 3'600'000'000'000;  // ns

Histogram Of(const std::vector<int64_t>& values) {
  Histogram histogram;
  for (const int64_t value : values) histogram.Add(value);
  return histogram;
}

// As latencies are: over many powers of two.
std::vector<int64_t> Spread(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<int64_t>(std::exp(random.Uniform(0, 29))));
  return values;
}

TEST(Histogram, SaysNothingWithoutValues) {
  const Histogram none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.Mean(), std::nullopt);
  EXPECT_EQ(none.StandardDeviation(), std::nullopt);
  EXPECT_EQ(none.Min(), std::nullopt);
  EXPECT_EQ(none.Max(), std::nullopt);
  EXPECT_EQ(none.Quantile(0.5), std::nullopt);
  EXPECT_EQ(none.AtRank(1), std::nullopt);
  EXPECT_THAT(none.Buckets(), IsEmpty());
}

TEST(Histogram, IsSmallBeforeItsFirstValue) { EXPECT_LT(sizeof(Histogram), 1024u); }

// Mean and deviation of the five by Python's statistics.fmean and .stdev.
TEST(Histogram, KeepsMomentsAndEndsExactly) {
  const Histogram histogram = Of({1'000'000'007, 3'599'999'999'999, 17, 2048, 999'999});
  EXPECT_EQ(histogram.count(), 5);
  EXPECT_DOUBLE_EQ(*histogram.Mean(), 720200200414.0);
  EXPECT_DOUBLE_EQ(*histogram.StandardDeviation(), 1609857086561.7222);
  EXPECT_THAT(histogram.Min(), Optional(17));
  EXPECT_THAT(histogram.Max(), Optional(3'599'999'999'999));
}

TEST(Histogram, KeepsTheDeviationOfManyLargeValuesThatDifferByOne) {
  Histogram histogram;
  histogram.Add(1'000'000'000'000, 5'000'000'000);
  histogram.Add(1'000'000'000'001, 5'000'000'000);
  EXPECT_DOUBLE_EQ(*histogram.Mean(), 1'000'000'000'000.5);
  EXPECT_DOUBLE_EQ(*histogram.StandardDeviation(), 0.5 * std::sqrt(1e10 / (1e10 - 1)));
}

TEST(Histogram, KnowsNoDeviationOfOneValueNorPastItsRange) {
  EXPECT_EQ(Of({5}).StandardDeviation(), std::nullopt);
  EXPECT_THAT(Of({5, 5}).StandardDeviation(), Optional(0.0));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Histogram huge = Of({kMost, kMost, kMost, kMost, kMost});
  EXPECT_EQ(huge.StandardDeviation(), std::nullopt);
  EXPECT_THAT(huge.Mean(), Optional(static_cast<double>(kMost)));
  EXPECT_THAT(huge.Quantile(0.5), Optional(kMost));
}

TEST(Histogram, TellsValuesBelow2048Apart) {
  Histogram histogram;
  for (int64_t value = 0; value < 2048; ++value) histogram.Add(value);
  for (int64_t rank = 1; rank <= 2048; ++rank) ASSERT_EQ(histogram.AtRank(rank), rank - 1);
}

TEST(Histogram, GivesEveryOrderStatisticWithinAThousandth) {
  std::vector<int64_t> values = Spread(5'000, 1);
  const Histogram histogram = Of(values);
  std::ranges::sort(values);
  for (int64_t rank = 1; rank <= std::ssize(values); ++rank) {
    const double exact = static_cast<double>(values[rank - 1]);
    ASSERT_NEAR(static_cast<double>(*histogram.AtRank(rank)), exact, exact / 1000) << rank;
  }
  EXPECT_EQ(histogram.AtRank(1), values.front());
  EXPECT_EQ(histogram.AtRank(std::ssize(values)), values.back());
  EXPECT_EQ(histogram.AtRank(0), std::nullopt);
  EXPECT_EQ(histogram.AtRank(std::ssize(values) + 1), std::nullopt);
}

TEST(Histogram, TakesTheQuantileAtTheNearestRank) {
  const Histogram histogram = Of({10, 20, 30, 40});
  EXPECT_THAT(histogram.Quantile(0), Optional(10));
  EXPECT_THAT(histogram.Quantile(0.25), Optional(10));
  EXPECT_THAT(histogram.Quantile(0.5), Optional(20));
  EXPECT_THAT(histogram.Quantile(0.51), Optional(30));
  EXPECT_THAT(histogram.Quantile(1), Optional(40));
  EXPECT_EQ(histogram.Quantile(1.5), std::nullopt);
  EXPECT_EQ(histogram.Quantile(NAN), std::nullopt);
}

TEST(Histogram, HasABucketForEveryInt64) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Histogram histogram = Of({0, 1023, 1024, 2047, 2048, 2049, 2050, kHour, kMost, -7});
  constexpr int64_t kWidthAtAnHour = int64_t{1} << 31;  // 2^41 <= an hour < 2^42
  constexpr int64_t kWidthAtMost = int64_t{1} << 52;
  EXPECT_THAT(
      histogram.Buckets(),
      ElementsAre(Pair(0, 2), Pair(1023, 1), Pair(1024, 1), Pair(2047, 1), Pair(2048, 2), Pair(2050, 1),
                  Pair(kHour - kHour % kWidthAtAnHour, 1), Pair(kMost - (kWidthAtMost - 1), 1)));
}

TEST(Histogram, CountsWhatIsAboveAValuesBucket) {
  const Histogram histogram = Of({0, 5, 6, 4096, 4099, 4100, kHour});
  EXPECT_EQ(histogram.CountAbove(-1), 7);
  EXPECT_EQ(histogram.CountAbove(0), 6);
  EXPECT_EQ(histogram.CountAbove(5), 5);
  EXPECT_EQ(histogram.CountAbove(4096), 2);  // 4096 .. 4099 share a bucket
  EXPECT_EQ(histogram.CountAbove(4100), 1);
  EXPECT_EQ(histogram.CountAbove(kHour), 0);
  EXPECT_EQ(histogram.CountAbove(std::numeric_limits<int64_t>::max()), 0);
}

TEST(Histogram, MergedIsAsIfAllValuesHadBeenAdded) {
  const std::vector<int64_t> a = Spread(3'000, 2), b = Spread(2'000, 3);
  std::vector<int64_t> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const Histogram all = Of(both);
  Histogram merged = Of(a);
  merged.Merge(Of(b));
  merged.Merge(Histogram());
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.Mean(), all.Mean());
  EXPECT_EQ(merged.StandardDeviation(), all.StandardDeviation());
  EXPECT_EQ(merged.Min(), all.Min());
  EXPECT_EQ(merged.Max(), all.Max());
  EXPECT_EQ(merged.Buckets(), all.Buckets());
}

TEST(Histogram, AddsAValueManyTimesAtOnce) {
  Histogram at_once;
  at_once.Add(70'000, 3);
  at_once.Add(5, 0);
  at_once.Add(5, -1);
  const Histogram one_by_one = Of({70'000, 70'000, 70'000});
  EXPECT_EQ(at_once.Buckets(), one_by_one.Buckets());
  EXPECT_EQ(at_once.Mean(), one_by_one.Mean());
  EXPECT_EQ(at_once.Min(), one_by_one.Min());
}

TEST(Histogram, ACopyStandsAlone) {
  Histogram original = Of({1, 5'000});
  Histogram copy = original;
  copy.Add(5'000);
  EXPECT_EQ(original.count(), 2);
  EXPECT_EQ(copy.count(), 3);
  original = copy;
  EXPECT_EQ(original.Buckets(), copy.Buckets());
  const Histogram moved = std::move(copy);
  EXPECT_EQ(moved.Buckets(), original.Buckets());
}

}  // namespace
}  // namespace weir::stats
