#include "infer/engines/busy_schedule.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

constexpr Instant kStart(100s);

TEST(BusySchedule, ABatchCostsItsBaseAndItsItems) {
  BusySchedule schedule({.base = 1ms, .per_item = 2ms});
  const auto slot = schedule.Reserve(8, kStart);
  EXPECT_EQ(slot.start, kStart);
  EXPECT_EQ(slot.end, kStart + 17ms);
}

TEST(BusySchedule, ABatchWaitsForTheOneBeforeIt) {
  BusySchedule schedule({.base = 10ms});
  schedule.Reserve(1, kStart);
  const auto second = schedule.Reserve(1, kStart + 3ms);
  EXPECT_EQ(second.start, kStart + 10ms);
  EXPECT_EQ(second.end, kStart + 20ms);
}

TEST(BusySchedule, LateCallersDoNotMoveTheEndOfABusyStream) {
  BusySchedule schedule({.base = 10ms});
  Instant end = schedule.Reserve(1, kStart).end;
  // Each next batch is given 0.4 ms after the last one but one ended: one is always waiting.
  for (int i = 1; i <= 1000; ++i) end = schedule.Reserve(1, kStart + (i - 1) * 10ms + 400us).end;
  EXPECT_EQ(end, kStart + 10010ms);
}

TEST(BusySchedule, AnIdleStreamBeginsWhenItIsGivenWork) {
  BusySchedule schedule({.base = 10ms});
  schedule.Reserve(1, kStart);
  EXPECT_EQ(schedule.Reserve(1, kStart + 50ms).start, kStart + 50ms);
}

TEST(BusySchedule, StreamsComputeSideBySide) {
  BusySchedule schedule({.base = 10ms, .streams = 2});
  EXPECT_EQ(schedule.Reserve(1, kStart).start, kStart);
  EXPECT_EQ(schedule.Reserve(1, kStart + 1ms).start, kStart + 1ms);
  EXPECT_EQ(schedule.Reserve(1, kStart + 2ms).start, kStart + 10ms);
  EXPECT_EQ(schedule.Reserve(1, kStart + 3ms).start, kStart + 11ms);
}

TEST(BusySchedule, TellsTheTimeEachStreamWasBusy) {
  BusySchedule schedule({.base = 10ms, .streams = 2});
  EXPECT_EQ(schedule.BusyUntil(kStart), (std::vector<Duration>{0ms, 0ms}));
  schedule.Reserve(1, kStart);
  schedule.Reserve(1, kStart + 2ms);
  schedule.Reserve(1, kStart + 4ms);  // from 10 to 20 ms on the first stream
  EXPECT_EQ(schedule.BusyUntil(kStart + 5ms), (std::vector<Duration>{5ms, 3ms}));
  EXPECT_EQ(schedule.BusyUntil(kStart + 15ms), (std::vector<Duration>{15ms, 10ms}));
  EXPECT_EQ(schedule.BusyUntil(kStart + 60ms), (std::vector<Duration>{20ms, 10ms}));
}

TEST(BusySchedule, JitterStaysWithinItsShareAndKeepsTheMean) {
  BusySchedule schedule({.base = 1ms, .jitter = 0.1});
  Instant before = kStart;
  for (int i = 0; i < 10000; ++i) {
    const auto slot = schedule.Reserve(1, kStart);
    EXPECT_GE(slot.end - before, 900us);
    EXPECT_LE(slot.end - before, 1100us);
    before = slot.end;
  }
  EXPECT_NEAR(Seconds(before - kStart), 10.0, 0.02);
}

TEST(BusySchedule, JitterIsTheSameForASeedAndAnotherForAnother) {
  const auto end = [](uint64_t seed) {
    BusySchedule schedule({.base = 1ms, .jitter = 0.5, .seed = Seed(seed)});
    schedule.Reserve(1, kStart);
    return schedule.Reserve(1, kStart).end;
  };
  EXPECT_EQ(end(7), end(7));
  EXPECT_NE(end(7), end(8));
}

}  // namespace
}  // namespace weir::infer
