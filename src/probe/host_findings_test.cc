#include "probe/host_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace weir::probe {
namespace {

using testing::HasSubstr;

// A machine of one's own, quiet, with nothing to complain of.
HostFacts QuietHost() {
  HostFacts facts;
  facts.engines = {{.name = "onnxruntime", .version = "1.31.1"}};
  facts.cpu = {.model = "Fast 9000",
               .instruction_sets = {"avx2", "avx512f"},
               .logical = 16,
               .physical = 16,
               .usable = 16,
               .governor = "performance",
               .turbo = false};
  facts.memory = {.total_bytes = int64_t{64} << 30,
                  .available_bytes = int64_t{60} << 30,
                  .transparent_huge_pages = "madvise"};
  facts.cgroup = {.version = "v2"};
  facts.limits = {.open_files = 65536, .open_files_at_most = 65536};
  facts.timer = {.clock_source = "tsc",
                 .resolution = 20ns,
                 .read_cost = 20ns,
                 .overshoot_median = 60us,
                 .overshoot_max = 90us,
                 .sleeps = 80};
  facts.load = {.foreign_cpus = 0.02,
                .steal_percent = 0,
                .steal_percent_so_far = 0,
                .cpu_pressure_percent = 0,
                .memory_pressure_percent = 0,
                .io_pressure_percent = 0,
                .watched = 200ms};
  facts.networks = {{.name = "eth0", .up = true, .megabits_per_s = 10000, .mtu = 9000}};
  facts.disk = {
      .folder = "/data", .filesystem = "ext4", .device = "nvme0n1", .rotational = false, .scheduler = "none"};
  facts.tools = {.containers = {"podman"}, .perf_event_paranoid = 1, .hardware_counters = true};
  return facts;
}

// The finding of `kind`; the first where there are several.
Finding Of(const HostFacts& facts, FindingKind kind) {
  for (Finding& finding : JudgeHost(facts)) {
    if (finding.kind == kind) return finding;
  }
  ADD_FAILURE() << "no finding " << ToString(kind);
  return {};
}

TEST(JudgeHost, FindsNothingWrongWithAQuietMachine) {
  for (const Finding& finding : JudgeHost(QuietHost())) {
    EXPECT_EQ(finding.severity, Severity::kOk) << finding.what;
    EXPECT_FALSE(finding.what.empty() || finding.meaning.empty()) << ToString(finding.kind);
  }
}

TEST(JudgeHost, SaysWhatToDoWithEveryWarning) {
  HostFacts facts;  // nothing could be read, everything is bad
  facts.engines = {{.name = "openvino", .problem = "not found: install it with `./dev setup`"}};
  facts.cpu.governor = "powersave";
  facts.memory.swap_total_bytes = facts.memory.swap_used_bytes = 1 << 30;
  facts.cgroup.cpus = 1.5;
  facts.timer = {
      .resolution = 4ms, .read_cost = 2us, .overshoot_median = 5ms, .overshoot_max = 9ms, .sleeps = 10};
  facts.load = {.foreign_cpus = 3, .steal_percent = 20, .cpu_pressure_percent = 90};
  facts.disk.filesystem = "nfs4";
  std::set<FindingKind> warned;
  for (const Finding& finding : JudgeHost(facts)) {
    if (finding.severity != Severity::kWarning) continue;
    warned.insert(finding.kind);
    EXPECT_FALSE(finding.remedy.empty()) << finding.what;
  }
  using enum FindingKind;
  EXPECT_THAT(warned, testing::UnorderedElementsAre(kEngine, kGovernor, kMemory, kSwap, kCgroup, kClock,
                                                    kTimer, kForeignCpu, kSteal, kPressure, kDisk));
}

TEST(JudgeHost, PassesOnHowToInstallAnEngine) {
  HostFacts facts = QuietHost();
  facts.engines = {{.name = "openvino", .problem = "install it with `./dev setup`"}};
  EXPECT_EQ(Of(facts, FindingKind::kEngine).remedy, "install it with `./dev setup`");
}

TEST(JudgeHost, MeasuresForeignLoadAgainstTheWholeMachine) {
  HostFacts facts = QuietHost();
  facts.load.foreign_cpus = 0.7;
  EXPECT_EQ(Of(facts, FindingKind::kForeignCpu).severity, Severity::kOk);
  facts.load.foreign_cpus = 0.9;
  EXPECT_EQ(Of(facts, FindingKind::kForeignCpu).severity, Severity::kWarning);
}

TEST(JudgeHost, RemembersStealThatIsNotThereNow) {
  HostFacts facts = QuietHost();
  facts.load.steal_percent_so_far = 4;
  EXPECT_EQ(Of(facts, FindingKind::kSteal).severity, Severity::kNote);
}

TEST(JudgeHost, LeavesOutLoadThatCouldNotBeWatched) {
  HostFacts facts = QuietHost();
  facts.load = {};
  for (const Finding& finding : JudgeHost(facts)) {
    EXPECT_NE(finding.kind, FindingKind::kForeignCpu);
    EXPECT_NE(finding.kind, FindingKind::kSteal);
  }
  EXPECT_EQ(Of(facts, FindingKind::kPressure).severity, Severity::kNote);
}

TEST(JudgeHost, TellsTensorsPerSecondOfALink) {
  EXPECT_THAT(Of(QuietHost(), FindingKind::kNetwork).meaning, HasSubstr("at most 2076 tensors"));
  HostFacts facts = QuietHost();
  facts.networks[0].megabits_per_s.reset();
  EXPECT_THAT(Of(facts, FindingKind::kNetwork).what, HasSubstr("rate unknown"));
}

TEST(JudgeHost, DoesNotBelieveAVirtualDiskThatItTurns) {
  HostFacts facts = QuietHost();
  facts.disk.rotational = true;
  EXPECT_EQ(Of(facts, FindingKind::kDisk).severity, Severity::kNote);
  facts.cpu.virtual_machine = true;
  EXPECT_EQ(Of(facts, FindingKind::kDisk).severity, Severity::kOk);
}

TEST(JudgeHost, SaysThatAGpuIsAbsentAndWhy) {
  HostFacts facts = QuietHost();
  EXPECT_THAT(Of(facts, FindingKind::kGpu).what, HasSubstr("management library is not here"));
  facts.gpus = {.library = true, .problem = "Driver Not Loaded"};
  EXPECT_THAT(Of(facts, FindingKind::kGpu).what, HasSubstr("Driver Not Loaded"));
  facts.gpus = {.library = true,
                .driver = "580.1",
                .problem = {},
                .cuda_version = "13.0",
                .cuda_problem = {},
                .gpus = {{.device = {.name = "NVIDIA H200", .memory_bytes = int64_t{139} << 30}, .now = {}}}};
  EXPECT_EQ(Of(facts, FindingKind::kGpu).what, "NVIDIA H200, 139.0 GiB (driver 580.1, CUDA 13.0)");
  EXPECT_THAT(Of(facts, FindingKind::kGpu).meaning, HasSubstr("CUDA does not see it"));
}

TEST(JudgeHost, WarnsOfACardThatIsNotWhatItsNameSays) {
  HostFacts facts = QuietHost();
  GpuFacts card{
      .device = {.name = "NVIDIA H200", .memory_bytes = int64_t{139} << 30}, .now = {}, .cuda_index = 0};
  card.device.persistent = false;
  card.device.power_limit_w = 350;
  card.device.usual_limit_w = 700;
  card.device.pcie_width = 8;
  card.device.pcie_most = 16;
  card.device.is_divided = true;
  card.now.clock_reasons = 0x4;
  card.now.neighbours = 1;
  card.now.ecc_errors = 2;
  facts.gpus = {.library = true,
                .driver = "580.1",
                .problem = {},
                .cuda_version = "13.0",
                .cuda_problem = {},
                .gpus = {card}};
  std::string all;
  for (const Finding& finding : JudgeHost(facts)) {
    if (finding.kind == FindingKind::kGpu) all += finding.what + " | " + finding.meaning + "\n";
  }
  for (const char* part :
       {"persistence mode is off", "capped at 350 W of 700", "8 of 16 lanes", "power_cap",
        "1 process of others", "2 memory errors", "divided into instances", "--device cuda:0 computes on it"})
    EXPECT_THAT(all, HasSubstr(part));
}

TEST(Finding, HasNamesOfKindsAndSeverities) {
  EXPECT_EQ(ToString(FindingKind::kGovernor), "cpu-governor");
  EXPECT_EQ(ToString(Severity::kWarning), "warning");
  EXPECT_EQ(ToString(FindingKind::kPerfEvents), "perf-events");
}

}  // namespace
}  // namespace weir::probe
