#include "monitor/resources.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "base/thread.h"
#include "monitor/testing/nvml_library.h"

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
  const std::jthread engine = StartThread(ThreadRole::kRecogniser, "0", [&](std::stop_token) {
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

TEST(ResourceMonitor, TellsOfTheGpus) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 2;
  for (int i : {0, 1}) {
    nvml.state().devices[i] = {.name = "NVIDIA A100",
                               .percent = 50u + 20 * i,
                               .memory_used = 1'000'000'000,
                               .power_mw = 100'000,
                               .clock_mhz = 1410,
                               .clock_reasons = nvml::kSwPowerCap};
  }
  const SteadyClock clock;
  auto monitor = ResourceMonitor::Start(clock, {.nvml_library = nvml.path()});
  ASSERT_TRUE(monitor);
  nvml.state().devices[0].energy_mj += 30'000;
  const Resources used = (*monitor)->Stop();
  EXPECT_EQ(used.gpu_label, "2 x NVIDIA A100");
  EXPECT_EQ(used.gpu_driver, "580.65.06");
  EXPECT_DOUBLE_EQ(used.gpu_percent->mean, 60);
  EXPECT_DOUBLE_EQ(used.gpu_memory_bytes->mean, 2e9);
  EXPECT_DOUBLE_EQ(*used.gpu_energy_j, 30);
  EXPECT_GE(used.gpu_power_watts->mean * used.wall_s, 30)
      << "in the time between the two readings, or longer";
  EXPECT_DOUBLE_EQ(used.gpu_clock_mhz->min, 1410);
  EXPECT_DOUBLE_EQ(used.gpu_throttled.at("power_cap"), 1);
  EXPECT_EQ(used.gpu_samples, 2) << "the first and the last";
  EXPECT_DOUBLE_EQ(used.gpu_period_ms, 200);
  const Json json = used.ToValue();
  EXPECT_EQ(json["gpus"].size(), 2u);
  EXPECT_EQ(json["gpu_driver"], "580.65.06");
  EXPECT_EQ(json["gpus"][1]["percent"]["mean"], 70);
  EXPECT_EQ(json["gpu_throttled"]["power_cap"], 1);
}

TEST(ResourceMonitor, TakesAReaderOfGpusThatIsOpen) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 1;
  nvml.state().devices[0].name = "NVIDIA H200";
  const std::shared_ptr<const GpuReader> gpus = *GpuReader::Open(nvml.path());
  const SteadyClock clock;
  auto monitor = ResourceMonitor::Start(clock, {.gpus = gpus, .nvml_library = ""});
  EXPECT_EQ(nvml.state().open, 1);
  const Resources used = (*monitor)->Stop();
  EXPECT_EQ(used.gpu_label, "NVIDIA H200");
  EXPECT_TRUE(used.gpus.empty()) << "one is not told of twice";
}

TEST(ResourceMonitor, TellsOfTheGpusThatCountAndOfTheEnginesTime) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 2;
  nvml.state().devices[0] = {.name = "Other", .percent = 5, .uuid = "GPU-a"};
  nvml.state().devices[1] = {.name = "Mine", .percent = 60, .uuid = "GPU-b", .graphics = 40};
  const SteadyClock clock;
  Duration busy{};
  auto monitor = ResourceMonitor::Start(
      clock, {.gpu_events = [&] { return busy; }, .nvml_library = nvml.path(), .gpu_uuids = {"GPU-b"}});
  ASSERT_TRUE(monitor) << monitor.error().message;
  busy = Duration(1h);  // longer than this test takes
  const Resources used = (*monitor)->Stop();
  EXPECT_EQ(used.gpu_label, "Mine");
  EXPECT_EQ(used.gpu_percent->mean, 60);
  EXPECT_EQ(used.gpu_activities.graphics_percent->mean, 40);
  ASSERT_TRUE(used.gpu_event_busy_percent);
  EXPECT_EQ(used.gpu_event_busy_percent->mean, 100);
}

TEST(ResourceMonitor, TellsOfNoGpuWhereNoneOfThoseThatCountIsThere) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 1;
  nvml.state().devices[0] = {.name = "Divided", .percent = 5, .uuid = "GPU-a"};
  const SteadyClock clock;
  auto monitor = ResourceMonitor::Start(
      clock, {.gpu_events = [] { return 1h; }, .nvml_library = nvml.path(), .gpu_uuids = {"MIG-a"}});
  ASSERT_TRUE(monitor) << monitor.error().message;
  const Resources used = (*monitor)->Stop();
  EXPECT_FALSE(used.gpu_percent);
  EXPECT_NE(used.gpu_label, "Divided");
  EXPECT_TRUE(used.gpu_event_busy_percent);
}

TEST(ResourceMonitor, TellsOfNoGpuWhereAnotherDeviceIsTheAccelerator) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 1;
  const SteadyClock clock;
  auto emulated = ResourceMonitor::Start(
      clock, {.device_busy = [] { return 0ms; }, .device_label = "emulated", .nvml_library = nvml.path()});
  EXPECT_EQ(nvml.state().open, 0);
  const Resources used = (*emulated)->Stop();
  EXPECT_EQ(used.gpu_label, "emulated");
  EXPECT_FALSE(used.gpu_memory_bytes);
}

TEST(ResourceMonitor, DoesWithoutGpusWhereThereAreNone) {
  const SteadyClock clock;
  for (const char* library : {"", "libno-such-library.so.1", "libc.so.6"}) {
    const Resources used = (*ResourceMonitor::Start(clock, {.nvml_library = library}))->Stop();
    EXPECT_FALSE(used.gpu_percent) << library;
    EXPECT_TRUE(used.gpu_label.empty()) << library;
    EXPECT_EQ(used.gpu_samples, 0) << library;
  }
}

TEST(ResourceMonitor, AsksTheServerAtTheFirstSampleAndAtTheLast) {
  const SteadyClock clock;
  int asked = 0;
  auto monitor = ResourceMonitor::Start(
      clock, {.server_page = [&]() -> Result<std::string> {
        return fmt::format("process_cpu_seconds_total {}\nprocess_resident_memory_bytes 4096\n", ++asked);
      }});
  ASSERT_TRUE(monitor);
  EXPECT_EQ(asked, 1);
  const Resources used = (*monitor)->Stop();
  EXPECT_EQ(asked, 2);
  ASSERT_TRUE(used.server_metrics);
  EXPECT_EQ(used.server_metrics->samples, 2);
  EXPECT_GE(used.server_metrics->cpu->mean * used.wall_s, 1) << "a second of CPU in less than the wall time";
  EXPECT_EQ(used.ToValue()["server_metrics"]["process_memory_bytes"]["mean"], 4096);
}

// So that one page can tell both.
TEST(ResourceMonitor, AsksTheDeviceBeforeTheServerInEachSample) {
  const SteadyClock clock;
  std::string order;
  auto monitor = ResourceMonitor::Start(clock, {.device_busy =
                                                    [&] {
                                                      order += 'd';
                                                      return Duration{};
                                                    },
                                                .server_page = [&]() -> Result<std::string> {
                                                  order += 's';
                                                  return "process_cpu_seconds_total 1\n";
                                                }});
  ASSERT_TRUE(monitor);
  (void)(*monitor)->Stop();
  EXPECT_TRUE(order.starts_with("ds")) << order;
  EXPECT_TRUE(order.ends_with("ds")) << order;
}

TEST(ResourceMonitor, GoesOnWhereTheServerDoesNotAnswer) {
  const SteadyClock clock;
  auto monitor = ResourceMonitor::Start(
      clock, {.server_page = []() -> Result<std::string> { return Fail(ErrorCode::kIo, "no route"); }});
  ASSERT_TRUE(monitor);
  const Resources used = (*monitor)->Stop();
  EXPECT_EQ(used.server_metrics->errors, 2);
  EXPECT_EQ(used.server_metrics->last_error, "no route");
  EXPECT_TRUE(used.app_cpu);
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
