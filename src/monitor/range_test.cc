#include "monitor/range.h"

#include <gtest/gtest.h>

namespace weir::monitor {
namespace {

constexpr Instant kStart{10s};

TEST(Extremes, AreAbsentWithoutASample) {
  Extremes seen;
  EXPECT_FALSE(seen.ToRange());
  for (const double value : {-3.0, 5.0, 1.0}) seen.Add(value);
  const Range range = *seen.ToRange();
  EXPECT_DOUBLE_EQ(range.mean, 1);
  EXPECT_DOUBLE_EQ(range.max, 5);
  EXPECT_DOUBLE_EQ(range.min, -3);
}

TEST(Counter, TellsItsMeanFromTheWholeTimeAndItsExtremesFromTheTimesBetween) {
  Counter counter(100ms);
  counter.Add(kStart, 1000);
  EXPECT_FALSE(counter.PerSecond());
  EXPECT_FALSE(counter.gained());
  counter.Add(kStart + 1s, 1010);
  counter.Add(kStart + 4s, 1070);
  // 70 in 4 s; 10 in the first, 20 a second in the other three.
  EXPECT_DOUBLE_EQ(counter.PerSecond()->mean, 17.5);
  EXPECT_DOUBLE_EQ(counter.PerSecond()->min, 10);
  EXPECT_DOUBLE_EQ(counter.PerSecond()->max, 20);
  EXPECT_DOUBLE_EQ(*counter.gained(), 70);
}

TEST(Counter, MakesNoPeakOfReadingsCloseTogether) {
  Counter counter(500ms);
  counter.Add(kStart, 0);
  counter.Add(kStart + 1s, 10);
  counter.Add(kStart + 1s + 1ms, 12);                      // 2,000 a second, it would seem
  EXPECT_DOUBLE_EQ(counter.PerSecond()->max, 12 / 1.001);  // the mean
  counter.Add(kStart + 2s, 20);
  EXPECT_DOUBLE_EQ(counter.PerSecond()->max, 10);
}

TEST(Counter, CountsFromZeroWhereItBeganAnew) {
  Counter counter(1ms);
  counter.Add(kStart, 100);
  counter.Add(kStart + 1s, 110);
  counter.Add(kStart + 2s, 4);
  EXPECT_DOUBLE_EQ(*counter.gained(), 14);
  EXPECT_DOUBLE_EQ(counter.PerSecond()->min, 4);
}

TEST(Counter, OfReadingsAtOneMomentHasNoRate) {
  Counter counter(Duration{});
  counter.Add(kStart, 1);
  counter.Add(kStart, 2);
  EXPECT_FALSE(counter.PerSecond());
}

}  // namespace
}  // namespace weir::monitor
