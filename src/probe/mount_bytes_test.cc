#include "probe/mount_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::probe {
namespace {

constexpr std::string_view kText =
    "device proc mounted on /proc with fstype proc\n"
    "device /dev/vda1 mounted on / with fstype ext4\n"
    "device pool:/export mounted on /mnt/pool with fstype nfs4 statvers=1.1\n"
    "\topts:\trw,vers=4.2,rsize=1048576\n"
    "\tage:\t1234\n"
    "\tcaps:\tcaps=0x3ffbffff,wtmult=512\n"
    "\tevents:\t10 20 30 40\n"
    "\tbytes:\t111 222 333 444 555666777888 999 12 13 \n"
    "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
    "\t\t        READ: 44 44 0 8888 6666666 0 30 34\n"
    "device other:/a\\040b mounted on /mnt/a\\040b with fstype nfs statvers=1.1\n"
    "\tbytes:\t1 2 3 4 5 6 7 8\n";

TEST(ServerReadBytes, IsTheFifthNumberOfTheMount) {
  EXPECT_EQ(ServerReadBytes(kText, "/mnt/pool"), 555666777888U);
  EXPECT_EQ(ServerReadBytes(kText, "/mnt/a\\040b"), 5U);
  EXPECT_EQ(ServerReadBytes(kText, "/"), std::nullopt);  // no network mount
  EXPECT_EQ(ServerReadBytes(kText, "/mnt"), std::nullopt);
}

TEST(ServerReadBytes, IsThatOfTheMountOnTop) {
  const std::string text =
      std::string(kText) + "device new:/x mounted on /mnt/pool with fstype nfs4\n\tbytes: 0 0 0 0 7 0\n";
  EXPECT_EQ(ServerReadBytes(text, "/mnt/pool"), 7U);
}

TEST(ServerReadBytes, OfBrokenTextIsNothing) {
  for (const char* line : {"\tbytes:\n", "\tbytes: 1 2 3\n", "\tbytes: 1 2 3 4 x5\n", "\tbytes: 1 2 3 4 -5\n",
                           "\tbytes: 1 2 3 4 99999999999999999999999\n", ""})
    EXPECT_EQ(ServerReadBytes("device a:/ mounted on /m with fstype nfs\n" + std::string(line), "/m"),
              std::nullopt)
        << line;
  EXPECT_EQ(ServerReadBytes("device  mounted on  with fstype nfs", ""), std::nullopt);
}

TEST(NfsMountPoints, AreThoseOfNfsAlone) {
  EXPECT_THAT(NfsMountPoints(kText), testing::ElementsAre("/mnt/pool", "/mnt/a\\040b"));
}

TEST(MountMeter, SaysNothingOfOtherFileSystems) {
  EXPECT_EQ(MountMeter::Of({{.path = "/proc/self/status", .bytes = 1}}).Read(), std::nullopt);
}

}  // namespace
}  // namespace weir::probe
