#include "http/rx_timestamps.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr Instant kNow(100s);
constexpr Duration kWall = 1'700'000'000s;

TEST(WallClockConverter, AreThoseOfTheMonotonicClock) {
  WallClockConverter moments;
  EXPECT_FALSE(moments.IsFresh(kNow));
  moments.Compare(kWall, kNow);
  EXPECT_TRUE(moments.IsFresh(kNow + 1us));
  EXPECT_EQ(moments.At(kWall - 300us, kNow - 1ms, kNow + 1us), kNow - 300us);
  EXPECT_FALSE(moments.IsFresh(kNow + 1s));
  moments.Compare(kWall + 1s + 1us, kNow + 1s);  // the clock is slewed, or was read late
  EXPECT_EQ(moments.At(kWall + 1s, kNow, kNow + 1s), kNow + 1s - 1us);
}

TEST(WallClockConverter, AreNeverLaterThanNow) {
  WallClockConverter moments;
  moments.Compare(kWall, kNow);
  EXPECT_EQ(moments.At(kWall + 1h, kNow - 1ms, kNow), kNow) << "a step that was not found yet";
  EXPECT_EQ(moments.At(kWall - 5ms, kNow - 1ms, kNow), kNow - 5ms) << "the answer to nothing";
}

TEST(WallClockConverter, AreNotKnownAcrossAStepOfTheWallClock) {
  for (const Duration step : {Duration(1h), Duration(-1h), Duration(1ms)}) {
    WallClockConverter moments;
    moments.Compare(kWall, kNow);
    moments.Compare(kWall + step + 2ms, kNow + 2ms);
    // Two answers that came before it.
    EXPECT_EQ(moments.At(kWall, kNow - 1ms, kNow + 2ms), std::nullopt);
    EXPECT_EQ(moments.At(kWall, kNow + 1ms, kNow + 3ms), std::nullopt);
    // To a request of after it.
    EXPECT_EQ(moments.At(kWall + step + 4ms, kNow + 3ms, kNow + 5ms), kNow + 4ms);
  }
}

}  // namespace
}  // namespace weir::http
