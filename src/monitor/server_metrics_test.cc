#include "monitor/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::monitor {
namespace {

using testing::HasSubstr;

constexpr Instant kStart{10s};

// As tritonserver 2.x writes it for a machine of two GPUs.
constexpr std::string_view kTriton =
    R"(# HELP nv_inference_count Number of inferences performed (does not include cached requests)
# TYPE nv_inference_count counter
nv_inference_count{model="tiny",version="1"} 42
# HELP nv_gpu_utilization GPU utilization rate [0.0 - 1.0)
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-a"} 0.800000
nv_gpu_utilization{gpu_uuid="GPU-b"} 0.200000
# HELP nv_gpu_memory_used_bytes GPU used memory, in bytes
# TYPE nv_gpu_memory_used_bytes gauge
nv_gpu_memory_used_bytes{gpu_uuid="GPU-a"} 3000000000.000000
nv_gpu_memory_used_bytes{gpu_uuid="GPU-b"} 1000000000.000000
# HELP nv_energy_consumption GPU energy consumption in joules since the Triton Server started
# TYPE nv_energy_consumption counter
nv_energy_consumption{gpu_uuid="GPU-a"} 594.400000
nv_energy_consumption{gpu_uuid="GPU-b"} 105.600000
# HELP nv_cpu_utilization CPU utilization rate [0.0 - 1.0]
# TYPE nv_cpu_utilization gauge
nv_cpu_utilization 0.250000
# HELP nv_cpu_memory_used_bytes CPU used memory (RAM), in bytes
# TYPE nv_cpu_memory_used_bytes gauge
nv_cpu_memory_used_bytes 8000000000.000000
)";

constexpr std::string_view kProcess = R"(# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1.2288e+08
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 3.75
)";

TEST(ReadServerMetrics, TellsOfTritonsMachineAndGpus) {
  const auto metrics = ReadServerMetrics(kTriton);
  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_DOUBLE_EQ(*metrics->gpu_share, 0.5);
  EXPECT_DOUBLE_EQ(*metrics->gpu_memory_bytes, 4e9);
  EXPECT_DOUBLE_EQ(*metrics->gpu_energy_j, 700);
  EXPECT_DOUBLE_EQ(*metrics->machine_cpu_share, 0.25);
  EXPECT_DOUBLE_EQ(*metrics->machine_memory_bytes, 8e9);
  EXPECT_FALSE(metrics->cpu_s);
}

// The answer of tritonserver 2.51 in its first second.
TEST(ReadServerMetrics, TakesZerosFromBeforeTritonLookedForNone) {
  const auto metrics = ReadServerMetrics(
      "# TYPE nv_cpu_utilization gauge\nnv_cpu_utilization 0\n# TYPE nv_cpu_memory_total_bytes gauge\n"
      "nv_cpu_memory_total_bytes 0\n# TYPE nv_cpu_memory_used_bytes gauge\nnv_cpu_memory_used_bytes 0\n");
  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_FALSE(metrics->machine_cpu_share);
  EXPECT_FALSE(metrics->machine_memory_bytes);
  EXPECT_EQ(ReadServerMetrics("nv_cpu_utilization 0\nnv_cpu_memory_used_bytes 5\n")->machine_cpu_share, 0);
  EXPECT_EQ(ReadServerMetrics("nv_cpu_utilization 0\n")->machine_cpu_share, 0);
}

TEST(ReadServerMetrics, TellsOfTheProcess) {
  const auto metrics = ReadServerMetrics(kProcess);
  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_DOUBLE_EQ(*metrics->cpu_s, 3.75);
  EXPECT_DOUBLE_EQ(*metrics->resident_bytes, 122'880'000);
  EXPECT_FALSE(metrics->gpu_share);
}

TEST(ReadServerMetrics, RefusesAPageWithoutThem) {
  EXPECT_EQ(ReadServerMetrics("go_goroutines 8\n").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadServerMetrics("nv_cpu_utilization NaN\nnv_gpu_utilization -1\n").error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(ReadServerMetrics("<html>").error().code, ErrorCode::kCorrupt);
}

TEST(ServerTally, TellsCountersByTheirDifferencesAndGaugesByTheirReadings) {
  ServerTally tally(1s);
  tally.Add(kStart,
            ServerMetrics{.cpu_s = 100, .resident_bytes = 10, .gpu_share = 0.5, .gpu_energy_j = 1000});
  tally.Add(kStart + 1s,
            ServerMetrics{.cpu_s = 100.5, .resident_bytes = 30, .gpu_share = 1, .gpu_energy_j = 1100});
  tally.Add(kStart + 4s,
            ServerMetrics{.cpu_s = 105, .resident_bytes = 20, .gpu_share = 0, .gpu_energy_j = 2000});
  const ServerUse use = tally.Sum();
  EXPECT_DOUBLE_EQ(use.cpu->mean, 1.25);  // 5 s in 4 s
  EXPECT_DOUBLE_EQ(use.cpu->max, 1.5);
  EXPECT_DOUBLE_EQ(use.cpu->min, 0.5);
  EXPECT_DOUBLE_EQ(use.process_memory_bytes->mean, 20);
  EXPECT_DOUBLE_EQ(use.gpu_percent->mean, 50);
  EXPECT_DOUBLE_EQ(use.gpu_percent->max, 100);
  EXPECT_DOUBLE_EQ(use.gpu_power_watts->mean, 250);
  EXPECT_DOUBLE_EQ(use.gpu_power_watts->max, 300);
  EXPECT_EQ(use.samples, 3);
  EXPECT_EQ(use.errors, 0);
  EXPECT_FALSE(use.machine_cpu_percent);
}

TEST(ServerTally, CountsWhatItCouldNotReadAndGoesOn) {
  ServerTally tally(1s);
  tally.Add(kStart, ServerMetrics{.cpu_s = 1});
  tally.Add(kStart + 1s, Fail(ErrorCode::kDeadline, "http://h:8002/metrics: no answer in 1 s"));
  tally.Add(kStart + 2s, ServerMetrics{.cpu_s = 2});
  const ServerUse use = tally.Sum();
  EXPECT_EQ(use.errors, 1);
  EXPECT_EQ(use.samples, 2);
  EXPECT_DOUBLE_EQ(use.cpu->mean, 0.5);
  EXPECT_DOUBLE_EQ(use.cpu->min, 0.5);
  EXPECT_DOUBLE_EQ(use.period_ms, 1000);
  EXPECT_EQ(use.last_error, "http://h:8002/metrics: no answer in 1 s");
}

TEST(ServerTally, CountsOnFromZeroWhereTheServerBeganAnew) {
  ServerTally tally(1s);
  tally.Add(kStart, ServerMetrics{.cpu_s = 50});
  tally.Add(kStart + 1s, ServerMetrics{.cpu_s = 51});
  tally.Add(kStart + 2s, ServerMetrics{.cpu_s = 0.25});
  EXPECT_DOUBLE_EQ(tally.Sum().cpu->mean, 0.625);
}

}  // namespace
}  // namespace weir::monitor
