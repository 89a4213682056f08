#include "launch/network_link.h"

#include <gmock/gmock.h>

#include "launch/command.h"
#include "launch/process.h"
#include "launch/ready.h"

namespace weir::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kFirst = 0xC6120000;  // 198.18.0.0

TEST(ShapeArguments, HoldABucketOf157MicrosecondsOfTheRate) {
  EXPECT_THAT(ShapeArguments("add", "weir1.2", 5),
              ElementsAre("tc", "qdisc", "add", "dev", "weir1.2", "root", "tbf", "rate", "5000000000bit",
                          "burst", "98125b", "latency", "2ms"));
}

TEST(ShapeArguments, HoldAtLeastTheLargestPacket) {
  EXPECT_THAT(ShapeArguments("change", "e", 0.1),
              ElementsAre("tc", "qdisc", "change", "dev", "e", "root", "tbf", "rate", "100000000bit", "burst",
                          "70000b", "latency", "2ms"));
}

TEST(FreeAddresses, AreAPairOfTheRangeForMeasuring) {
  const auto pair = FreeAddresses({}, 0);
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->near, kFirst + 1);
  EXPECT_EQ(pair->far, kFirst + 2);
}

TEST(FreeAddresses, PassOverWhatIsTaken) {
  const auto pair = FreeAddresses({0x7F000001, kFirst + 1, kFirst + 6}, 0);
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->near, kFirst + 9);
}

TEST(FreeAddresses, BeginAgainAtTheEndOfTheRange) {
  const uint32_t last = kFirst + (1 << 17) - 4;
  EXPECT_EQ(FreeAddresses({}, (1 << 15) - 1)->near, last + 1);
  EXPECT_EQ(FreeAddresses({last + 1}, (1 << 15) - 1)->near, kFirst + 1);
}

TEST(NetworkLink, NamesAnOptionThatCannotBe) {
  const SteadyClock clock;
  EXPECT_THAT(NetworkLink::Create({.gbit_per_s = 0}, clock).error().message, HasSubstr("a link of 0 Gbit/s"));
  EXPECT_THAT(NetworkLink::Create({.mtu = 100}, clock).error().message, HasSubstr("an MTU of 100"));
}

// Skipped where links cannot be made: the test says with the reason.
class NetworkLinkTest : public testing::Test {
 protected:
  std::unique_ptr<NetworkLink> Make() {
    auto link = NetworkLink::Create({}, clock_);
    if (link) return std::move(*link);
    EXPECT_EQ(link.error().code, ErrorCode::kUnsupported) << link.error().message;
    reason_ = link.error().message;
    return nullptr;
  }
  bool DeviceIsThere(const std::string& device) {
    return RunWell({.arguments = {"ip", "link", "show", "dev", device}}, clock_).has_value();
  }

  const SteadyClock clock_;
  std::string reason_;
};

TEST_F(NetworkLinkTest, JoinsTwoNamespaces) {
  const auto link = Make();
  if (link == nullptr) GTEST_SKIP() << reason_;
  const auto there = StartProcess(
      {.command = {"ip", "-o", "-4", "address", "show", "dev", "eth0"}, .link = link.get()}, clock_);
  ASSERT_TRUE(there.has_value()) << there.error().message;
  EXPECT_EQ((*there)->address(), link->far_address());
  EXPECT_EQ((*there)->WaitForEnd(clock_.Now() + 60s), Ending{});
  EXPECT_THAT((*there)->LastWords(), HasSubstr(link->far_address() + "/30"));
  const Status asked = AskHttp("http://" + link->far_address() + ":8000/", 10s, clock_);
  ASSERT_FALSE(asked.has_value());
  EXPECT_THAT(asked.error().message, HasSubstr("Connection refused")) << "that is: the far side was reached";
}

TEST_F(NetworkLinkTest, IsShapedAtBothEndsAndTakesAnotherRate) {
  const auto link = Make();
  if (link == nullptr) GTEST_SKIP() << reason_;
  const auto near = [&] {
    return RunWell({.arguments = {"tc", "qdisc", "show", "dev", link->device()}}, clock_);
  };
  const auto far = [&] {
    return RunWell(
        {.arguments = {"tc", "qdisc", "show", "dev", "eth0"}, .network_namespace = link->far_namespace()},
        clock_);
  };
  EXPECT_THAT(near().value_or(""), HasSubstr("rate 5Gbit"));
  EXPECT_THAT(far().value_or(""), HasSubstr("rate 5Gbit"));
  ASSERT_TRUE(link->SetRate(1).has_value());
  EXPECT_THAT(near().value_or(""), HasSubstr("rate 1Gbit"));
  EXPECT_THAT(far().value_or(""), HasSubstr("rate 1Gbit"));
}

TEST_F(NetworkLinkTest, StandsBesideAnotherAndLeavesNothing) {
  auto one = Make(), two = Make();
  if (one == nullptr || two == nullptr) GTEST_SKIP() << reason_;
  const std::string device = one->device();
  EXPECT_NE(device, two->device());
  EXPECT_NE(one->far_address(), two->far_address());
  EXPECT_TRUE(DeviceIsThere(device));
  one.reset();
  EXPECT_FALSE(DeviceIsThere(device));
  EXPECT_TRUE(DeviceIsThere(two->device()));
}

}  // namespace
}  // namespace weir::launch
