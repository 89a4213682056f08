#include "monitor/cgroup.h"

#include <gtest/gtest.h>

#include "monitor/testing/fake_tree.h"

namespace weir::monitor {
namespace {

std::string MountV2(const std::string& at, const std::string& root = "/") {
  return "31 24 0:27 " + root + " " + at + " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
}
std::string MountV1(const std::string& at, const std::string& controllers, const std::string& root = "/") {
  return "32 31 0:29 " + root + " " + at + " rw,relatime - cgroup cgroup rw," + controllers + "\n";
}

TEST(Cgroup, OfVersion2HasOnePlace) {
  const Cgroup cgroup = FindCgroup("22 1 8:1 / / rw - ext4 /dev/sda rw\n" + MountV2("/sys/fs/cgroup"),
                                   "0::/user.slice/session-1.scope\n");
  EXPECT_EQ(cgroup.version(), "v2");
  EXPECT_EQ(cgroup.unified.mount, "/sys/fs/cgroup");
  EXPECT_EQ(cgroup.unified.path, "/user.slice/session-1.scope");
  EXPECT_FALSE(cgroup.mounted_inside);
}

TEST(Cgroup, OfVersion1HasAPlacePerController) {
  const Cgroup cgroup = FindCgroup(MountV1("/c/cpu,cpuacct", "cpu,cpuacct") + MountV1("/c/memory", "memory"),
                                   "4:memory:/process/a\n2:cpu,cpuacct:/\n");
  EXPECT_EQ(cgroup.version(), "v1");
  EXPECT_EQ(cgroup.cpu.mount, "/c/cpu,cpuacct");
  EXPECT_EQ(cgroup.cpu.path, "");
  EXPECT_EQ(cgroup.memory.path, "/process/a");
}

TEST(Cgroup, MayBeHybridOrMissing) {
  EXPECT_EQ(FindCgroup(MountV1("/c/cpu", "cpu") + MountV2("/c/unified"), "1:cpu:/\n0::/\n").version(),
            "hybrid");
  EXPECT_EQ(FindCgroup("", "").version(), "none");
}

TEST(Cgroup, InsideAContainerWithoutANamespaceIsTheMountItself) {
  const Cgroup cgroup =
      FindCgroup(MountV1("/sys/fs/cgroup/memory", "memory", "/libpod/abc"), "4:memory:/libpod/abc/inner\n");
  EXPECT_TRUE(cgroup.mounted_inside);
  EXPECT_EQ(cgroup.memory.path, "/inner");
}

TEST(CgroupLimits, AreTheLeastOfTheGroupAndThoseAboveIt) {
  FakeTree files;
  files.Put("/a/cpu.max", "150000 100000\n");
  files.Put("/a/b/cpu.max", "max 100000\n");
  files.Put("/a/memory.max", "max\n");
  files.Put("/a/b/memory.max", "314572800\n");
  const CgroupLimits limits = ReadCgroupLimits(FindCgroup(MountV2(files.root()), "0::/a/b\n"));
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 314572800);
}

TEST(CgroupLimits, OfVersion1TakeTheKernelsLargestNumberForNone) {
  FakeTree files;
  files.Put("/cpu/a/cpu.cfs_quota_us", "50000\n");
  files.Put("/cpu/a/cpu.cfs_period_us", "100000\n");
  files.Put("/cpu/cpu.cfs_quota_us", "-1\n");
  files.Put("/cpu/cpu.cfs_period_us", "100000\n");
  files.Put("/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits = ReadCgroupLimits(
      FindCgroup(MountV1(files.root() + "/cpu", "cpu") + MountV1(files.root() + "/memory", "memory"),
                 "1:cpu:/a\n2:memory:/\n"));
  EXPECT_EQ(limits.cpus, 0.5);
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
}

TEST(CgroupCounters, TakesVersion2NamesFirst) {
  FakeTree files;
  files.Put("/unified/a/memory.current", "1000\n");
  files.Put("/unified/a/memory.stat", "anon 5\ninactive_file 300\n");
  files.Put("/unified/a/cpu.stat", "usage_usec 5\nthrottled_usec 2500\n");
  files.Put("/memory/memory.usage_in_bytes", "7\n");
  CgroupCounters counters(
      FindCgroup(MountV2(files.root() + "/unified") + MountV1(files.root() + "/memory", "memory"),
                 "0::/a\n1:memory:/\n"));
  const CgroupUsage usage = counters.Read();
  EXPECT_EQ(usage.memory_bytes, 700);
  EXPECT_EQ(usage.throttled, 2500us);
}

TEST(CgroupCounters, FallsBackToVersion1OfAHybridLayout) {
  FakeTree files;
  files.Put("/unified/cpu.stat", "usage_usec 5\n");
  files.Put("/cpu/cpu.stat", "nr_periods 4\nnr_throttled 1\nthrottled_time 40\n");
  files.Put("/memory/a/memory.usage_in_bytes", "900\n");
  files.Put("/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n");
  const std::string mounts = MountV2(files.root() + "/unified") + MountV1(files.root() + "/cpu", "cpu") +
                             MountV1(files.root() + "/memory", "memory");
  CgroupCounters counters(FindCgroup(mounts, "0::/\n1:cpu:/\n2:memory:/a\n"));
  const CgroupUsage usage = counters.Read();
  EXPECT_EQ(usage.memory_bytes, 500);
  EXPECT_EQ(usage.throttled, 40ns);
}

TEST(CgroupCounters, AreAbsentWithoutFiles) {
  const CgroupUsage usage = CgroupCounters(FindCgroup("", "")).Read();
  EXPECT_FALSE(usage.memory_bytes);
  EXPECT_FALSE(usage.throttled);
}

}  // namespace
}  // namespace weir::monitor
