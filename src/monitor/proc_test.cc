#include "monitor/proc.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::monitor {
namespace {

TEST(ProcessStat, IsReadFromALineOfTheKernel) {
  const auto stat = ParseProcessStat(
      "7651 (cat) R 7640 7640 7640 0 -1 4194304 104 12 0 0 3 4 50 60 20 0 1 0 139638 5595136 430 "
      "18446744073709551615 "
      "94051 94067 140721 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 7651);
  EXPECT_EQ(stat->name, "cat");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 7640);
  EXPECT_EQ(stat->cpu, 70ms);
  EXPECT_EQ(stat->children_cpu, 1100ms);
  EXPECT_EQ(stat->threads, 1);
  EXPECT_EQ(stat->start_ticks, 139638u);
  EXPECT_EQ(stat->resident_bytes, 430 * ::sysconf(_SC_PAGESIZE));
}

TEST(ProcessStat, TakesANameWithBlanksBracketsAndLineEnds) {
  const auto stat = ParseProcessStat(
      "12 (a) S 9 (\n) R 7 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 "
      "0");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) S 9 (\n");
  EXPECT_EQ(stat->parent, 7);
}

TEST(ProcessStat, IsNothingForATextCutShort) {
  const std::string line = "12 (a) S 7 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 1 1";
  EXPECT_TRUE(ParseProcessStat(line));
  for (size_t cut = 0; cut + 1 < line.size(); ++cut)
    EXPECT_FALSE(ParseProcessStat(line.substr(0, cut))) << cut;
}

TEST(MachineStat, CountsStealAndIdleApart) {
  const auto stat =
      ParseMachineStat("cpu  5971 10 3207 223741 822 20 40 61 100 0\ncpu0 2156 0 1197 113528\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->busy, (5971 + 10 + 3207 + 20 + 40) * 10ms);
  EXPECT_EQ(stat->idle, (223741 + 822) * 10ms);
  EXPECT_EQ(stat->steal, 610ms);
  EXPECT_FALSE(ParseMachineStat("intr 1 2 3 4 5 6 7 8 9\n"));
}

TEST(MachineStat, OfAnOldKernelHasNoSteal) { EXPECT_EQ(ParseMachineStat("cpu 1 2 3 4 5 6 7\n")->steal, 0ms); }

TEST(MachineStat, TellsWhatBeganAndHowOftenTasksTookTurns) {
  const auto stat =
      ParseMachineStat("cpu 1 2 3 4 5 6 7 8\nintr 5 6\nctxt 72299886\nbtime 1\nprocesses 535268\n");
  EXPECT_EQ(stat->context_switches, 72299886);
  EXPECT_EQ(stat->forks, 535268);
  EXPECT_FALSE(ParseMachineStat("cpu 1 2 3 4 5 6 7 8\n")->forks);
}

TEST(DiskBytes, AreThoseOfTheDisksNamedInSectorsOf512) {
  constexpr std::string_view kText =
      "   7       0 loop0 1 0 999 0 0 0 999 0 0 0 0 0 0 0 0 0 0\n"
      " 254       0 vda 1314137 87687 38548274 5873755 618091 403524 161607232 854979 0 401048 6828831 "
      "237838 27 "
      "112555304 74583 76576 25512\n"
      " 254       1 vda1 1314137 87687 38548000 5873755 618091 403524 161607000 854979 0 401048 6828831\n"
      " 259       0 nvme0n1 5 0 10 0 5 0 20 0 0 0 0\n";
  const auto disks = ParseDiskBytes(kText, {"nvme0n1", "vda", "sdz"});
  ASSERT_TRUE(disks);
  EXPECT_EQ(disks->read, (int64_t{38548274} + 10) * 512);
  EXPECT_EQ(disks->written, (int64_t{161607232} + 20) * 512);
  EXPECT_FALSE(ParseDiskBytes(kText, {"sda"}));
  EXPECT_FALSE(ParseDiskBytes("254 0 vda 1 2 x 4 5 6 7\n254 0 vda 1 2\n", {"vda"}));
}

TEST(PeakResident, IsTheHighWaterMark) {
  EXPECT_EQ(ParsePeakResident("Name:\tcat\nVmPeak:\t    5464 kB\nVmHWM:\t    1720 kB\nVmRSS:\t    1700 kB\n"),
            1720 * 1024);
  EXPECT_FALSE(ParsePeakResident("Name:\tcat\nState:\tZ (zombie)\n"));
}

TEST(MemoryInfo, IsInBytes) {
  const auto memory =
      ParseMemoryInfo("MemTotal:       24684092 kB\nMemFree: 5 kB\nMemAvailable:   24401940 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total_bytes, int64_t{24684092} * 1024);
  EXPECT_EQ(memory->available_bytes, int64_t{24401940} * 1024);
  EXPECT_FALSE(ParseMemoryInfo("MemTotal: 1 kB\n"));
}

TEST(IoBytes, AreThoseOfStorage) {
  const auto io =
      ParseIo("rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->read, 4096);
  EXPECT_EQ(io->written, 8192);
}

TEST(NetworkBytes, LeaveLoopbackOut) {
  const auto network = ParseNetworkBytes(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo "
      "colls c c\n"
      "    lo:    3267      29    0    0    0     0          0         0     3267      29    0    0    0     "
      "0       0  "
      "        0\n"
      "  eth0:106601250    2069    0    0    0     0          0         0    97181    1333    0    0    0    "
      " 0       "
      "0          0\n"
      "eth0:1:       5       1    0    0    0     0          0         0        7       1    0    0    0     "
      "0       0 "
      "         0\n");
  ASSERT_TRUE(network);
  EXPECT_EQ(network->received, 106601255);
  EXPECT_EQ(network->sent, 97188);
  EXPECT_FALSE(ParseNetworkBytes(""));
}

TEST(Pressure, IsTheTotalOfSome) {
  EXPECT_EQ(ParsePressure("some avg10=0.38 avg60=0.81 avg300=0.44 total=7760920\nfull avg10=0.00 total=0\n"),
            7760920us);
  EXPECT_FALSE(ParsePressure("full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"));
  EXPECT_FALSE(ParsePressure(""));
}

TEST(Schedstat, IsInNanoseconds) {
  EXPECT_EQ(ParseSchedstat("535040 12000 3\n"), 535040ns);
  EXPECT_FALSE(ParseSchedstat("\n"));
}

TEST(FindNumber, WantsTheWholeKey) {
  EXPECT_EQ(FindNumber("total_rss 7\nrss 5\n", "rss"), 5);
  EXPECT_EQ(FindNumber("rss_huge 7\n", "rss"), std::nullopt);
  EXPECT_EQ(FindNumber("rss\nrss x\n", "rss"), std::nullopt);
}

TEST(ReadSmall, ReadsAFileWhoseSizeTheKernelDoesNotTell) {
  const auto text = ReadSmall("/proc/self/stat");
  ASSERT_TRUE(text);
  EXPECT_EQ(ParseProcessStat(*text)->pid, ::getpid());
  EXPECT_FALSE(ReadSmall("/proc/self/no such file"));
}

TEST(KernelFile, IsMadeAfreshByEachRead) {
  KernelFile file("/proc/self/stat");
  ASSERT_TRUE(file.Read());
  EXPECT_EQ(ParseProcessStat(*file.Read())->pid, ::getpid());
  EXPECT_FALSE(KernelFile("/proc/self/no such file").Read());
}

}  // namespace
}  // namespace weir::monitor
