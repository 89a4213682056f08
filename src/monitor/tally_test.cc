#include "monitor/tally.h"

#include <gtest/gtest.h>

namespace weir::monitor {
namespace {

constexpr Instant kStart{10s};

Tally MakeTally(Tally::Options options = {}) {
  options.cpus = 4;
  return Tally(options, kStart);
}

// A snapshot `after` the start of one process, 10, that has used `cpu`.
Snapshot At(Duration after, Duration cpu) {
  Snapshot snapshot{.at = kStart + after};
  snapshot.processes = {{.pid = 10, .start_ticks = 1, .parent = 1, .cpu = cpu}};
  return snapshot;
}

TEST(Tally, TellsMeanFromTheWholeTimeAndExtremesFromPeriods) {
  Tally tally = MakeTally();
  tally.Add(At(0ms, 5s));
  tally.Add(At(100ms, 5s + 100ms));
  tally.Add(At(200ms, 5s + 100ms));
  tally.Add(At(400ms, 5s + 400ms));
  const Resources sum = tally.Sum();
  ASSERT_TRUE(sum.app_cpu);
  EXPECT_DOUBLE_EQ(sum.app_cpu->mean, 1.0);
  EXPECT_DOUBLE_EQ(sum.app_cpu->max, 1.5);
  EXPECT_DOUBLE_EQ(sum.app_cpu->min, 0.0);
  EXPECT_EQ(sum.samples, 3);
  EXPECT_DOUBLE_EQ(sum.wall_s, 0.4);
  EXPECT_DOUBLE_EQ(sum.period_ms, 100);
}

TEST(Tally, TellsTheAcceleratorsBusyShare) {
  Tally tally = MakeTally();
  for (const auto& [at, busy] : {std::pair{0ms, 0ms}, {100ms, 100ms}, {200ms, 150ms}}) {
    Snapshot snapshot = At(at, 0ms);
    snapshot.device_busy = busy;
    tally.Add(snapshot);
  }
  EXPECT_DOUBLE_EQ(tally.Sum().gpu_percent->mean, 75);
  EXPECT_DOUBLE_EQ(tally.Sum().gpu_percent->max, 100);
  EXPECT_DOUBLE_EQ(tally.Sum().gpu_percent->min, 50);
}

TEST(Tally, GivesOneSampleForARunShorterThanAPeriod) {
  Tally tally = MakeTally();
  tally.Add(At(0ms, 0ms));
  tally.Add(At(20ms, 10ms));
  const Resources sum = tally.Sum();
  EXPECT_EQ(sum.samples, 1);
  EXPECT_DOUBLE_EQ(sum.app_cpu->mean, 0.5);
  EXPECT_DOUBLE_EQ(sum.app_cpu->max, 0.5);
}

TEST(Tally, DoesNotTakeTheRemnantOfAPeriodForAPeak) {
  Tally tally = MakeTally();
  tally.Add(At(0ms, 0ms));
  tally.Add(At(100ms, 50ms));
  tally.Add(At(101ms, 60ms));
  EXPECT_NEAR(tally.Sum().app_cpu->max, 60.0 / 101, 1e-9);
}

TEST(Tally, KeepsEngineApplicationAndMonitorApart) {
  Tally tally = MakeTally();
  Snapshot first = At(0ms, 1s), last = At(100ms, 1s + 180ms);
  first.engine_threads = {{.tid = 21, .start_ticks = 5, .cpu = 500ms}};
  last.engine_threads = {{.tid = 21, .start_ticks = 5, .cpu = 620ms}};
  first.observer = 1ms;
  last.observer = 2ms;
  tally.Add(first);
  tally.Add(last);
  const Resources sum = tally.Sum();
  EXPECT_DOUBLE_EQ(sum.recogniser_cpu->mean, 1.2);
  EXPECT_NEAR(sum.app_cpu->mean, 0.59, 1e-9);
  EXPECT_NEAR(sum.observer_cpu, 0.01, 1e-9);
}

TEST(Tally, TellsWhatEachSampleCostAndTheFirstApart) {
  Tally tally = MakeTally();
  for (const auto& [at, observer] : {std::pair{0ms, 900us}, {100ms, 1000us}, {200ms, 1300us}}) {
    Snapshot snapshot = At(at, 0ms);
    snapshot.observer = observer;
    tally.Add(snapshot);
    EXPECT_EQ(tally.Sum().observer_us_per_sample.has_value(), at > 0ms);
  }
  EXPECT_DOUBLE_EQ(*tally.Sum().observer_us_per_sample, 200);
  EXPECT_DOUBLE_EQ(tally.Sum().observer_first_us, 900);
}

TEST(Tally, SumsTheThreadsOfTheProcesses) {
  Tally tally = MakeTally({.watch = Tally::Watch::kOthers});
  for (const auto& [at, more] : {std::pair{0ms, 0}, {100ms, 5}, {200ms, 1}}) {
    Snapshot snapshot = At(at, 0ms);
    snapshot.processes[0].threads = 4;
    snapshot.processes.push_back({.pid = 11, .start_ticks = 2, .parent = 10, .threads = more});
    tally.Add(snapshot);
  }
  EXPECT_DOUBLE_EQ(tally.Sum().threads->mean, 6);
  EXPECT_DOUBLE_EQ(tally.Sum().threads->max, 9);
  EXPECT_DOUBLE_EQ(tally.Sum().threads->min, 4);
}

TEST(Tally, KeepsTheLargestProcessOfAnySample) {
  Tally tally = MakeTally({.watch = Tally::Watch::kOthers});
  Snapshot first = At(0ms, 0ms), last = At(100ms, 0ms);
  first.processes[0].peak_resident_bytes = 100;
  first.processes.push_back({.pid = 11, .start_ticks = 2, .parent = 10, .peak_resident_bytes = 700});
  last.processes[0].peak_resident_bytes = 300;
  tally.Add(first);
  tally.Add(last);
  EXPECT_EQ(tally.Sum().largest_process_bytes, 700);
  EXPECT_FALSE(tally.Sum().threads);
}

TEST(Tally, TellsTheMachinesDisksAndTurnsByTheirDifferences) {
  Tally tally = MakeTally();
  Snapshot first = At(0ms, 0ms), last = At(500ms, 0ms);
  first.disks = DiskBytes{.read = 1000, .written = 50};
  last.disks = DiskBytes{.read = 5096, .written = 562};
  first.machine = MachineStat{.context_switches = 70'000};
  last.machine = MachineStat{.context_switches = 71'000};
  tally.Add(first);
  tally.Add(last);
  EXPECT_EQ(tally.Sum().disk_read_bytes, 4096);
  EXPECT_EQ(tally.Sum().disk_written_bytes, 512);
  EXPECT_DOUBLE_EQ(*tally.Sum().context_switches_per_s, 2000);
}

TEST(Tally, MakesNothingNegativeOfEngineThreadsThatEnd) {
  Tally tally = MakeTally();
  Snapshot first = At(0ms, 0ms), second = At(100ms, 100ms), third = At(200ms, 200ms);
  first.engine_threads = {{.tid = 21, .start_ticks = 5, .cpu = 10s}};
  second.engine_threads = {{.tid = 21, .start_ticks = 9, .cpu = 30ms}};  // another thread of the same number
  for (const Snapshot& snapshot : {first, second, third}) tally.Add(snapshot);
  const Resources sum = tally.Sum();
  EXPECT_NEAR(sum.recogniser_cpu->mean, 0.15, 1e-9);
  EXPECT_DOUBLE_EQ(sum.recogniser_cpu->min, 0);
  EXPECT_NEAR(sum.app_cpu->mean, 0.85, 1e-9);
}

TEST(Tally, CountsAChildOnceWhetherItsParentWaitedForItOrNot) {
  Tally tally = MakeTally({.watch = Tally::Watch::kOthers});
  Snapshot first = At(0ms, 100ms);
  Snapshot second = At(100ms, 120ms);
  second.processes.push_back({.pid = 11, .start_ticks = 3, .parent = 10, .cpu = 50ms});
  Snapshot third = At(200ms, 120ms);  // 11 ended with 80 ms in all, and 10 waited for it
  third.processes[0].reaped = 80ms;
  for (const Snapshot& snapshot : {first, second, third}) tally.Add(snapshot);
  EXPECT_NEAR(tally.Sum().app_cpu->mean, 0.100 / 0.2, 1e-9);

  Snapshot fourth = At(300ms, 120ms);
  fourth.processes[0].reaped = 80ms;
  fourth.processes.push_back({.pid = 12, .start_ticks = 4, .parent = 10, .cpu = 30ms});
  Snapshot fifth = At(400ms, 130ms);  // 12 ended and nobody waited
  fifth.processes[0].reaped = 80ms;
  tally.Add(fourth);
  tally.Add(fifth);
  EXPECT_NEAR(tally.Sum().app_cpu->mean, 0.140 / 0.4, 1e-9);
}

TEST(Tally, FindsAnEndedProcessAgainInItsGrandparent) {
  Tally tally = MakeTally({.watch = Tally::Watch::kOthers});
  Snapshot first = At(0ms, 0ms);
  first.processes.push_back({.pid = 11, .start_ticks = 2, .parent = 10, .cpu = 20ms});
  first.processes.push_back({.pid = 12, .start_ticks = 3, .parent = 11, .cpu = 40ms});
  Snapshot second = At(100ms, 0ms);
  second.processes[0].reaped = 70ms;
  tally.Add(first);
  tally.Add(second);
  EXPECT_NEAR(tally.Sum().app_cpu->mean, 0.1, 1e-9);
}

TEST(Tally, CountsFromBirthWhatWasStartedForIt) {
  Tally tally = MakeTally({.watch = Tally::Watch::kOthers, .from = Tally::From::kBirth});
  Snapshot first = At(2ms, 20ms);
  first.processes[0].io = IoBytes{.read = 4096, .written = 0};
  Snapshot last = At(100ms, 50ms);
  last.processes[0].io = IoBytes{.read = 8192, .written = 512};
  tally.Add(first);
  tally.Add(last);
  const Resources sum = tally.Sum();
  EXPECT_DOUBLE_EQ(sum.app_cpu->mean, 0.5);
  EXPECT_EQ(sum.read_bytes, 8192);
  EXPECT_EQ(sum.written_bytes, 512);
  EXPECT_FALSE(sum.recogniser_cpu);
}

TEST(Tally, TellsTheMachineWithStealApart) {
  Tally tally = MakeTally();
  Snapshot first = At(0ms, 0ms), last = At(100ms, 0ms);
  first.machine = MachineStat{.busy = 1s, .idle = 9s, .steal = 0s};
  last.machine = MachineStat{.busy = 1s + 120ms, .idle = 9s + 60ms, .steal = 20ms};
  tally.Add(first);
  tally.Add(last);
  const Resources sum = tally.Sum();
  EXPECT_DOUBLE_EQ(sum.server_cpu->mean, 1.2);
  EXPECT_DOUBLE_EQ(sum.client_cpu->mean, 1.2);
  EXPECT_DOUBLE_EQ(*sum.steal_percent, 10);
}

TEST(Tally, NeverShowsAPeriodAboveTheMachinesCpus) {
  Tally tally = MakeTally();
  tally.Add(At(0ms, 0ms));
  tally.Add(At(100ms, 410ms));
  tally.Add(At(200ms, 410ms));
  EXPECT_DOUBLE_EQ(tally.Sum().app_cpu->max, 4);
}

TEST(Tally, TakesTheContainersMemoryOffTheHosts) {
  for (const bool in_container : {false, true}) {
    Tally tally = MakeTally({.in_container = in_container});
    Snapshot snapshot = At(0ms, 0ms);
    snapshot.memory = MemoryInfo{.total_bytes = 1000, .available_bytes = 400};
    snapshot.cgroup.memory_bytes = 150;
    tally.Add(snapshot);
    snapshot.at += 100ms;
    snapshot.cgroup.memory_bytes = 250;
    tally.Add(snapshot);
    const Resources sum = tally.Sum();
    EXPECT_DOUBLE_EQ(sum.host_memory_bytes->mean, in_container ? 400 : 600);
    EXPECT_EQ(sum.container_memory_bytes.has_value(), in_container);
  }
}

TEST(Tally, SumsTheResidentMemoryOfWhatLives) {
  Tally tally = MakeTally({.watch = Tally::Watch::kOthers});
  Snapshot first = At(0ms, 0ms);
  first.processes[0].resident_bytes = 100;
  first.processes.push_back({.pid = 11, .start_ticks = 2, .parent = 10, .resident_bytes = 50});
  tally.Add(first);
  tally.Add(At(100ms, 0ms));  // ended: no reading of 0
  const Resources sum = tally.Sum();
  EXPECT_DOUBLE_EQ(sum.process_memory_bytes->max, 150);
  EXPECT_DOUBLE_EQ(sum.process_memory_bytes->min, 150);
}

TEST(Tally, TellsPressureAndThrottlingOverTheWholeTime) {
  Tally tally = MakeTally();
  Snapshot first = At(0ms, 0ms), last = At(200ms, 0ms);
  first.cpu_pressure = 5s;
  last.cpu_pressure = 5s + 50ms;
  first.cgroup.throttled = 1s;
  last.cgroup.throttled = 1s + 30ms;
  tally.Add(first);
  tally.Add(last);
  const Resources sum = tally.Sum();
  EXPECT_DOUBLE_EQ(*sum.cpu_pressure_percent, 25);
  EXPECT_FALSE(sum.memory_pressure_percent);
  EXPECT_NEAR(*sum.throttled_s, 0.03, 1e-12);
}

TEST(Resources, LeaveOutOfTheirJsonWhatCouldNotBeRead) {
  Tally tally = MakeTally();
  tally.Add(At(0ms, 0ms));
  tally.Add(At(100ms, 50ms));
  const Json json = tally.Sum().ToValue();
  EXPECT_EQ(DumpJson(json["app_cpu"]), R"({"mean":0.5,"max":0.5,"min":0.5})");
  for (const char* key : {"server_cpu", "gpu_percent", "gpu_label", "read_bytes", "steal_percent",
                          "throttled_s", "host_memory_bytes", "io_pressure_percent", "threads",
                          "disk_read_bytes", "context_switches_per_s", "gpu_power_watts", "gpu_throttled",
                          "gpus", "gpu_period_ms", "server_metrics", "largest_process_bytes"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
}

}  // namespace
}  // namespace weir::monitor
