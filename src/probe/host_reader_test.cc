#include "probe/host_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "probe/host_probe.h"

namespace weir::probe {
namespace {

using testing::ElementsAre;

// The kernel's trees of a machine that is not there.
class HostReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "host_reader_test." + std::to_string(::getpid());
    roots_ = {.proc = folder_ + "/proc", .sys = folder_ + "/sys"};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& path, std::string_view text) {
    const std::filesystem::path file = folder_ + path;
    ASSERT_TRUE(MakeFolders(file.parent_path()));
    ASSERT_TRUE(WriteFileWhole(file, text));
  }
  void PutCpu(int number, std::string_view siblings) {
    Put("/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/thread_siblings_list", siblings);
  }

  std::string folder_;
  HostRoots roots_;
};

TEST_F(HostReaderTest, CountsCoresByTheirSiblings) {
  for (const int cpu : {0, 2}) PutCpu(cpu, "0,2\n");
  for (const int cpu : {1, 3}) PutCpu(cpu, "1,3\n");
  Put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  Put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
  Put("/proc/cpuinfo", "model name\t: Fast 9000\nflags\t\t: fpu avx2 hypervisor amx_tile\n");
  Put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
  const CpuFacts cpu = ReadCpu(roots_);
  EXPECT_EQ(cpu.logical, 4);
  EXPECT_EQ(cpu.physical, 2);
  EXPECT_EQ(cpu.governor, "powersave");
  EXPECT_EQ(cpu.turbo, false);
  EXPECT_EQ(cpu.model, "Fast 9000");
  EXPECT_THAT(cpu.instruction_sets, ElementsAre("avx2", "amx"));
  EXPECT_TRUE(cpu.virtual_machine);
  EXPECT_EQ(cpu.machine, "QEMU");
}

TEST_F(HostReaderTest, OfAnEmptyMachineInventsNothing) {
  const CpuFacts cpu = ReadCpu(roots_);
  EXPECT_GE(cpu.logical, 1);
  EXPECT_EQ(cpu.physical, cpu.logical);
  EXPECT_FALSE(cpu.governor);
  EXPECT_FALSE(cpu.turbo);
  EXPECT_EQ(ReadMemory(roots_).total_bytes, 0);
  EXPECT_EQ(ReadCgroup(roots_).version, "none");
  EXPECT_TRUE(ReadNetworks(roots_).empty());
  EXPECT_TRUE(ReadTools(roots_, "").containers.empty());
}

TEST_F(HostReaderTest, ReadsMemorySwapPagesAndNodes) {
  Put("/proc/meminfo",
      "MemTotal: 100 kB\nMemAvailable: 60 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\nHugePages_Total: 3\n");
  Put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  Put("/sys/devices/system/node/node0/x", "");
  Put("/sys/devices/system/node/node1/x", "");
  Put("/sys/devices/system/node/has_cpu", "0-1\n");
  const MemoryFacts memory = ReadMemory(roots_);
  EXPECT_EQ(memory.total_bytes, 100 * 1024);
  EXPECT_EQ(memory.swap_used_bytes, 30 * 1024);
  EXPECT_EQ(memory.transparent_huge_pages, "madvise");
  EXPECT_EQ(memory.reserved_huge_pages, 3);
  EXPECT_EQ(memory.numa_nodes, 2);
}

TEST_F(HostReaderTest, LeavesOutLoopbackAndInterfacesThatAreDownAndVirtual) {
  Put("/sys/class/net/lo/operstate", "unknown\n");
  Put("/sys/class/net/ifb0/operstate", "down\n");
  Put("/sys/class/net/eth0/operstate", "up\n");
  Put("/sys/class/net/eth0/mtu", "1400\n");
  Put("/sys/class/net/eth0/speed", "-1\n");
  Put("/sys/class/net/eth1/operstate", "down\n");
  Put("/sys/class/net/eth1/device/vendor", "0x1\n");
  Put("/sys/class/net/eth1/speed", "25000\n");
  const auto networks = ReadNetworks(roots_);
  ASSERT_EQ(networks.size(), 2u);
  EXPECT_EQ(networks[0].name, "eth0");
  EXPECT_TRUE(networks[0].up);
  EXPECT_EQ(networks[0].megabits_per_s, std::nullopt);
  EXPECT_EQ(networks[0].mtu, 1400);
  EXPECT_FALSE(networks[1].up);
  EXPECT_EQ(networks[1].megabits_per_s, 25000);
}

TEST_F(HostReaderTest, FindsTheQueueOfAPartitionAboveIt) {
  Put("/sys/devices/sda/queue/rotational", "1\n");
  Put("/sys/devices/sda/queue/scheduler", "none [mq-deadline] kyber\n");
  Put("/sys/devices/sda/sda1/partition", "1\n");
  struct stat status{};
  ASSERT_EQ(::stat(folder_.c_str(), &status), 0);
  const std::string device =
      std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  ASSERT_TRUE(MakeFolders(roots_.sys + "/dev/block"));
  std::filesystem::create_directory_symlink(roots_.sys + "/devices/sda/sda1",
                                            roots_.sys + "/dev/block/" + device);
  Put("/proc/self/mountinfo", "27 1 " + device + " / / rw - ext4 /dev/sda1 rw\n");
  const DiskFacts disk = ReadDisk(roots_, folder_);
  EXPECT_EQ(disk.filesystem, "ext4");
  EXPECT_EQ(disk.device, "sda1");
  EXPECT_EQ(disk.rotational, true);
  EXPECT_EQ(disk.scheduler, "mq-deadline");
}

TEST_F(HostReaderTest, LooksForToolsInThePath) {
  Put("/bin/podman", "");
  ::chmod((folder_ + "/bin/podman").c_str(), 0755);
  Put("/bin/docker", "");  // not a program
  Put("/proc/sys/kernel/perf_event_paranoid", "2\n");
  const ToolFacts tools = ReadTools(roots_, "/nowhere::" + folder_ + "/bin");
  EXPECT_THAT(tools.containers, ElementsAre("podman"));
  EXPECT_EQ(tools.perf_event_paranoid, 2);
  EXPECT_FALSE(tools.hardware_counters);
}

TEST_F(HostReaderTest, TakesItsOwnWorkOffTheForeignLoad) {
  Put("/proc/stat", "cpu 90 0 0 900 0 0 0 10\n");
  const monitor::Resources used{.server_cpu = monitor::Range{1.5, 1.5, 1.5},
                                .app_cpu = monitor::Range{0.4, 0.4, 0.4},
                                .observer_cpu = 0.1,
                                .wall_s = 0.2};
  const LoadFacts load = ReadLoad(roots_, used);
  EXPECT_DOUBLE_EQ(*load.foreign_cpus, 1.0);
  EXPECT_DOUBLE_EQ(*load.steal_percent_so_far, 1.0);
}

TEST(Parsers, FindArmsWordsToo) {
  EXPECT_THAT(ParseInstructionSets("Features\t: fp asimd asimddp sve bf16\n"),
              ElementsAre("neon", "neon_dot", "sve", "bf16"));
  EXPECT_TRUE(ParseInstructionSets("").empty());
}

TEST(Parsers, TakeTheLastMountOfADevice) {
  EXPECT_EQ(
      FindFilesystem("1 0 0:5 / /a rw - tmpfs none rw\n2 0 0:5 / /b rw shared:1 - overlay none rw\n", "0:5"),
      "overlay");
  EXPECT_EQ(FindFilesystem("torn line\n", "0:5"), "");
}

TEST(ProbeHost, SaysSomethingOfEveryKindOnThisMachine) {
  const SteadyClock clock;
  const auto findings = ProbeHost(clock, {.watch = 0ms});
  using enum FindingKind;
  for (const FindingKind kind :
       {kEngine, kCpuModel, kCpuCount, kCgroup, kMemory, kLimits, kClock, kGpu, kDisk}) {
    EXPECT_THAT(findings, testing::Contains(testing::Field(&Finding::kind, kind))) << ToString(kind);
  }
}

}  // namespace
}  // namespace weir::probe
