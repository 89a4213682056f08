#include "monitor/resources.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/thread.h"

namespace weir::monitor {
namespace {

void Burn(Duration cpu) {
  const Duration until = ThreadCpuTime() + cpu;
  while (ThreadCpuTime() < until) {
  }
}

TEST(ResourceMonitor, GivesOneSampleWhenStoppedAtOnce) {
  const SteadyClock clock;
  auto monitor = ResourceMonitor::Start(clock, {});
  ASSERT_TRUE(monitor);
  const Resources used = (*monitor)->Stop();
  EXPECT_EQ(used.samples, 1);
  ASSERT_TRUE(used.app_cpu && used.recogniser_cpu && used.process_memory_bytes && used.host_memory_bytes);
  EXPECT_GT(used.process_memory_bytes->mean, 1 << 20);
  EXPECT_GT(used.wall_s, 0);
  EXPECT_GE(used.observer_cpu, 0);
}

TEST(ResourceMonitor, TellsTheEnginesThreadsFromTheApplication) {
  const SteadyClock clock;
  auto monitor = ResourceMonitor::Start(clock, {.period = 20ms});
  ASSERT_TRUE(monitor);
  std::atomic<bool> burnt = false, seen = false;
  const std::jthread engine = StartThread("engine-0", [&](std::stop_token) {
    Burn(300ms);
    burnt = true;
    burnt.notify_all();
    seen.wait(false);
  });
  Burn(100ms);
  burnt.wait(false);
  const Resources used = (*monitor)->Stop();
  seen = true;
  seen.notify_all();
  // The kernel brings a thread's count up to date at its ticks (10 ms at most).
  EXPECT_NEAR(used.recogniser_cpu->mean * used.wall_s, 0.300, 0.03);
  EXPECT_NEAR(used.app_cpu->mean * used.wall_s, 0.100, 0.03);
  EXPECT_LE(used.recogniser_cpu->min, used.recogniser_cpu->mean);
  EXPECT_GE(used.recogniser_cpu->max, used.recogniser_cpu->mean);
}

TEST(ResourceMonitor, StopsAgainWithTheSameSum) {
  const SteadyClock clock;
  auto monitor = ResourceMonitor::Start(clock, {});
  const Resources once = (*monitor)->Stop();
  EXPECT_EQ((*monitor)->Stop().wall_s, once.wall_s);
}

TEST(ResourceMonitor, NamesAProcessThatIsNotThere) {
  const SteadyClock clock;
  const auto monitor = ResourceMonitor::Start(clock, {.processes = {999'999'999}});
  ASSERT_FALSE(monitor);
  EXPECT_EQ(monitor.error(), (Error{ErrorCode::kNotFound, "monitor: there is no process 999999999"}));
  EXPECT_FALSE(ResourceMonitor::Start(clock, {.period = 0ms}));
}

}  // namespace
}  // namespace weir::monitor
