#include "monitor/gpu_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::monitor {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr Instant kStart{10s};

GpuTally OneDevice() { return GpuTally({"NVIDIA H200"}, 200ms); }

TEST(GpuTally, TellsWattsFromTheEnergyCounterAndTheirExtremesFromTheGauge) {
  GpuTally tally = OneDevice();
  // 300 J in 1 s, the gauge saying 250, 420 and 310 W.
  tally.Add(kStart, {{.energy_j = 7000, .power_watts = 250}});
  tally.Add(kStart + 200ms, {{.energy_j = 7050, .power_watts = 420}});
  tally.Add(kStart + 1s, {{.energy_j = 7300, .power_watts = 310}});
  const GpuUse use = *tally.Together();
  EXPECT_DOUBLE_EQ(use.power_watts->mean, 300);
  EXPECT_DOUBLE_EQ(use.power_watts->max, 420);
  EXPECT_DOUBLE_EQ(use.power_watts->min, 250);
  EXPECT_DOUBLE_EQ(*use.energy_j, 300);
}

TEST(GpuTally, DoesWithWhicheverOfCounterAndGaugeThereIs) {
  GpuTally gauge = OneDevice(), counter = OneDevice();
  for (const auto& [at, watts, joules] :
       {std::tuple{0ms, 100.0, 10.0}, {1000ms, 300.0, 60.0}, {2000ms, 200.0, 260.0}}) {
    gauge.Add(kStart + at, {{.power_watts = watts}});
    counter.Add(kStart + at, {{.energy_j = joules}});
  }
  EXPECT_DOUBLE_EQ(gauge.Together()->power_watts->mean, 200);
  EXPECT_DOUBLE_EQ(gauge.Together()->power_watts->max, 300);
  EXPECT_FALSE(gauge.Together()->energy_j);
  EXPECT_DOUBLE_EQ(counter.Together()->power_watts->mean, 125);
  EXPECT_DOUBLE_EQ(counter.Together()->power_watts->max, 200);
  EXPECT_DOUBLE_EQ(counter.Together()->power_watts->min, 50);
}

TEST(GpuTally, TellsLevelsOverTheSamples) {
  GpuTally tally = OneDevice();
  tally.Add(kStart, {{.percent = 40, .memory_bytes = 100, .clock_mhz = 1980}});
  tally.Add(kStart + 200ms, {});
  tally.Add(kStart + 400ms, {{.percent = 100, .memory_bytes = 400, .clock_mhz = 1500}});
  const GpuUse use = *tally.Together();
  EXPECT_EQ(use.name, "NVIDIA H200");
  EXPECT_EQ(use.samples, 2);
  EXPECT_DOUBLE_EQ(use.percent->mean, 70);
  EXPECT_DOUBLE_EQ(use.percent->min, 40);
  EXPECT_DOUBLE_EQ(use.memory_bytes->max, 400);
  EXPECT_DOUBLE_EQ(use.clock_mhz->mean, 1740);
  EXPECT_FALSE(use.power_watts);
  EXPECT_THAT(use.throttled, IsEmpty());
}

TEST(GpuTally, TellsTheShareOfTheSamplesInWhichTheClocksWereHeldDown) {
  GpuTally tally = OneDevice();
  tally.Add(kStart, {{.clock_reasons = 0x1}});  // idle
  tally.Add(kStart + 200ms, {{.clock_reasons = 0x4}});
  tally.Add(kStart + 400ms, {{.clock_reasons = 0x44}});
  tally.Add(kStart + 600ms, {{.clock_reasons = 0}});
  tally.Add(kStart + 800ms, {{.clock_reasons = {}}});  // not told
  EXPECT_THAT(tally.Together()->throttled,
              ElementsAre(Pair("hardware_thermal", DoubleEq(0.25)), Pair("power_cap", DoubleEq(0.5))));
}

TEST(GpuTally, PutsSeveralDevicesTogether) {
  GpuTally tally({"NVIDIA A100", "NVIDIA A100"}, 200ms);
  tally.Add(kStart,
            {{.percent = 100, .memory_bytes = 10, .energy_j = 0, .power_watts = 300, .clock_reasons = 4},
             {.percent = 0, .memory_bytes = 30, .energy_j = 50, .power_watts = 60, .clock_reasons = 0}});
  tally.Add(kStart + 1s,
            {{.percent = 50, .memory_bytes = 10, .energy_j = 310, .power_watts = 320, .clock_reasons = 4},
             {.percent = 20, .memory_bytes = 35, .energy_j = 110, .power_watts = 60, .clock_reasons = 0}});
  const GpuUse all = *tally.Together();
  EXPECT_EQ(all.name, "2 x NVIDIA A100");
  EXPECT_DOUBLE_EQ(all.percent->mean, 42.5);  // of 50 and 35
  EXPECT_DOUBLE_EQ(all.percent->max, 50);
  EXPECT_DOUBLE_EQ(all.memory_bytes->max, 45);
  EXPECT_DOUBLE_EQ(all.power_watts->mean, 370);  // 310 J and 60 J in a second
  EXPECT_DOUBLE_EQ(all.power_watts->max, 380);
  EXPECT_DOUBLE_EQ(*all.energy_j, 370);
  EXPECT_THAT(all.throttled, ElementsAre(Pair("power_cap", DoubleEq(0.5))));
  EXPECT_DOUBLE_EQ(tally.Each()[1].percent->mean, 10);
}

TEST(GpuTally, MakesNoSumOfDevicesOfWhichOneDoesNotTell) {
  GpuTally tally({"A", "B"}, 200ms);
  tally.Add(kStart, {{.percent = 30, .power_watts = 100}, {.power_watts = 50}});
  tally.Add(kStart + 1s, {{.percent = 30, .power_watts = 100}, {}});  // lost
  const GpuUse all = *tally.Together();
  EXPECT_FALSE(all.percent);
  EXPECT_DOUBLE_EQ(all.power_watts->min, 150) << "no drop to 100";
  EXPECT_DOUBLE_EQ(tally.Each()[0].percent->mean, 30);
}

TEST(GpuTally, IsNothingWithoutASample) {
  GpuTally tally = OneDevice();
  EXPECT_FALSE(tally.Together());
  tally.Add(kStart, {});
  EXPECT_FALSE(tally.Together());
}

}  // namespace
}  // namespace weir::monitor
