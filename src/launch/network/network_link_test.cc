#include "launch/network/network_link.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <vector>

#include "base/file.h"
#include "launch/network/variable_rate.h"
#include "launch/process/command.h"
#include "launch/process/ready.h"
#include "launch/testing/process.h"

namespace weir::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kFirst = 0xC6120000;  // 198.18.0.0

TEST(BucketFor, Holds157MicrosecondsOfTheRateAndAQueueOfTwoMilliseconds) {
  const Bucket bucket = BucketFor(5, 2ms);
  EXPECT_EQ(bucket.bytes_per_s, 625'000'000U);
  EXPECT_EQ(bucket.burst_bytes, 98'125U);
  EXPECT_EQ(bucket.queue_bytes, 98'125U + 1'250'000U);
}

TEST(BucketFor, HoldsTheQueueThatIsAskedFor) {
  EXPECT_EQ(BucketFor(5, 10ms).queue_bytes, 98'125U + 6'250'000U);
  EXPECT_EQ(BucketFor(100, 1s).queue_bytes, 2'000'000'000U) << "12.5 GB are more than the kernel can count";
}

TEST(BucketFor, HoldsAtLeastTheLargestPacket) {
  EXPECT_EQ(BucketFor(0.1, 2ms).burst_bytes, 70'000U);
  EXPECT_EQ(BucketFor(0.1, 2ms).queue_bytes, 70'000U + 25'000U);
}

TEST(ShapeArguments, SayTheBucketInTcsWords) {
  EXPECT_THAT(ShapeArguments("weir1.2", {.parent = 0xFFFFFFFF, .handle = 0x00100000}, BucketFor(5, 2ms)),
              ElementsAre("tc", "qdisc", "add", "dev", "weir1.2", "root", "handle", "10:", "tbf", "rate",
                          "5000000000bit", "burst", "98125b", "limit", "1348125b"));
  EXPECT_THAT(ShapeArguments("e", {.parent = 0x00010001, .handle = 0x00100000}, BucketFor(0.1, 2ms)),
              ElementsAre("tc", "qdisc", "add", "dev", "e", "parent", "1:1", "handle", "10:", "tbf", "rate",
                          "100000000bit", "burst", "70000b", "limit", "95000b"));
}

TEST(CountArguments, HoldNothingBack) {
  EXPECT_THAT(
      CountArguments("e", {.parent = 0xFFFFFFFF, .handle = 0x00100000}),
      ElementsAre("tc", "qdisc", "add", "dev", "e", "root", "handle", "10:", "pfifo", "limit", "100000"));
}

TEST(DelayArguments, SayTheDelayInMicroseconds) {
  EXPECT_THAT(DelayArguments("e", 1500us), ElementsAre("tc", "qdisc", "add", "dev", "e", "root", "handle",
                                                       "1:", "netem", "delay", "1500us", "limit", "1000000"));
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
  EXPECT_THAT(NetworkLink::Create({.queue = 10us}, clock).error().message,
              HasSubstr("a link's queue of 0.01 ms"));
  EXPECT_THAT(NetworkLink::Create({.delay = -1ms}, clock).error().message,
              HasSubstr("a link's delay of -1 ms"));
}

// Skipped where links cannot be made: the test says with the reason.
class NetworkLinkTest : public testing::Test {
 protected:
  std::unique_ptr<NetworkLink> Make(NetworkLink::Options options = {}) {
    auto link = NetworkLink::Create(options, clock_);
    if (link) return std::move(*link);
    EXPECT_EQ(link.error().code, ErrorCode::kUnsupported) << link.error().message;
    reason_ = link.error().message;
    return nullptr;
  }
  // The device at this end of it.
  static std::string DeviceOf(const NetworkLink& link) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return "";
    std::string device;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
      char text[INET_ADDRSTRLEN] = {};
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
      if (link.near_address() == text) device = one->ifa_name;
    }
    ::freeifaddrs(list);
    return device;
  }
  // Returns the output of tc for it.
  std::string Shown(const NetworkLink& link) {
    return RunWell({.arguments = {"tc", "qdisc", "show", "dev", DeviceOf(link)}}, clock_).value_or("");
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
  const Status asked = AskHttp("http://" + link->far_address() + ":8000/", 10s);
  ASSERT_FALSE(asked.has_value());
  EXPECT_THAT(asked.error().message, HasSubstr("Connection refused")) << "that is: the far side was reached";
}

TEST_F(NetworkLinkTest, IsShapedAtBothEndsAndTakesAnotherRate) {
  const auto link = Make();
  if (link == nullptr) GTEST_SKIP() << reason_;
  const auto far = [&] {
    return RunWell(
        {.arguments = {"tc", "qdisc", "show", "dev", "eth0"}, .network_namespace = link->far_namespace()},
        clock_);
  };
  EXPECT_THAT(Shown(*link), HasSubstr("rate 5Gbit"));
  EXPECT_THAT(far().value_or(""), HasSubstr("rate 5Gbit"));
  ASSERT_TRUE(link->SetRate(1).has_value());
  EXPECT_THAT(Shown(*link), HasSubstr("rate 1Gbit"));
  EXPECT_THAT(far().value_or(""), HasSubstr("rate 1Gbit"));
}

// A link that was made with a rate and one that was changed to it are the same to tc.
TEST_F(NetworkLinkTest, IsNotShapedWithoutARateAndCountsAllTheSame) {
  const auto link = Make({.gbit_per_s = std::nullopt});
  if (link == nullptr) GTEST_SKIP() << reason_;
  EXPECT_THAT(Shown(*link), HasSubstr("pfifo"));
  EXPECT_THAT(Shown(*link), ::testing::Not(HasSubstr("rate")));
  const Status asked = AskHttp("http://" + link->far_address() + ":8000/", 10s);
  EXPECT_THAT(asked.error().message, HasSubstr("Connection refused")) << "that is: the far side was reached";
  const auto counters = link->ReadCounters();
  ASSERT_TRUE(counters.has_value()) << counters.error().message;
  EXPECT_GT(counters->to_far.packets, 0U);
  EXPECT_GT(counters->to_near.packets, 0U);
}

TEST_F(NetworkLinkTest, ChangesTheRateAsTcWouldHaveSetIt) {
  const auto one = Make({.gbit_per_s = 5}), other = Make({.gbit_per_s = 12.5});
  if (one == nullptr || other == nullptr) GTEST_SKIP() << reason_;
  const auto shown = [&](const NetworkLink& link) {
    const std::string text = Shown(link);
    return text.substr(0, text.find(" lat "));
  };
  EXPECT_NE(shown(*one), shown(*other));
  ASSERT_TRUE(one->SetRate(12.5).has_value());
  EXPECT_THAT(shown(*one), HasSubstr("12500Mbit"));
  EXPECT_EQ(shown(*one), shown(*other));
  ASSERT_TRUE(one->SetRate(50).has_value()) << "more than 32 bits of bytes a second";
  EXPECT_THAT(shown(*one), HasSubstr("50Gbit"));
  EXPECT_FALSE(one->SetRate(0).has_value());
}

// Sends as much as the socket takes, and what arrives.
class Transfer {
 public:
  Transfer(const NetworkLink& link, const Clock& clock) : clock_(clock) {
    UniqueFd listener = Socket();
    sockaddr_in address{.sin_family = AF_INET};
    ::inet_pton(AF_INET, link.near_address().c_str(), &address.sin_addr);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    const std::string port = std::to_string(ntohs(address.sin_port));
    auto sender = StartProcess({.command = {"python3", "-c",
                                            "import socket, sys\n"
                                            "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
                                            "block = bytes(1 << 20)\n"
                                            "while True: s.sendall(block)\n",
                                            link.near_address(), port},
                                .link = &link},
                               clock);
    EXPECT_TRUE(sender.has_value()) << sender.error().message;
    sender_ = std::move(*sender);
    pollfd ready{listener.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 60'000), 1) << sender_->LastWords();
    peer_ = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  // Bytes that arrive until `until`.
  uint64_t ReceiveUntil(Instant until) {
    std::vector<char> buffer(1 << 20);
    uint64_t received = 0;
    while (clock_.Now() < until) {
      const ssize_t got = ::recv(peer_.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      received += static_cast<uint64_t>(got);
    }
    return received;
  }

 private:
  static UniqueFd Socket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

  const Clock& clock_;
  std::unique_ptr<Launched> sender_;
  UniqueFd peer_;
};

// Rates so low that buffers bridge the moments in which a busy machine runs neither sender nor receiver.
TEST_F(NetworkLinkTest, PassesWhatItsRateAllowsAndCountsIt) {
  const auto link = Make({.gbit_per_s = 0.04});
  if (link == nullptr) GTEST_SKIP() << reason_;
  Transfer transfer(*link, clock_);
  uint64_t total = transfer.ReceiveUntil(clock_.Now() + 200ms);  // the beginning of the connection
  for (const double rate : {0.04, 0.02, 0.08}) {
    ASSERT_TRUE(link->SetRate(rate).has_value());
    total += transfer.ReceiveUntil(clock_.Now() + 200ms);
    const Instant begin = clock_.Now();
    const uint64_t received = transfer.ReceiveUntil(begin + 600ms);
    const double allowed = rate * 1e9 / 8 * Seconds(clock_.Now() - begin);
    EXPECT_GE(static_cast<double>(received), allowed * 0.5) << rate;
    // Bytes in the receiver's buffer came at the rate before.
    EXPECT_LE(static_cast<double>(received), allowed * 1.2 + 500'000) << rate;
    total += received;
  }
  const auto counters = link->ReadCounters();
  ASSERT_TRUE(counters.has_value()) << counters.error().message;
  EXPECT_GE(counters->to_near.bytes, total);
  EXPECT_GT(counters->to_near.packets, total / 70'000);
  EXPECT_GT(counters->to_far.bytes, 0U) << "acknowledgements";
  EXPECT_LT(counters->to_far.bytes, total / 10);
}

// Over whole rounds of the schedule the mean rate passes, whatever the rates were.
TEST_F(NetworkLinkTest, PassesTheMeanOfAScheduleOfRates) {
  const auto link = Make({.gbit_per_s = 0.04});
  if (link == nullptr) GTEST_SKIP() << reason_;
  const auto schedule = RateSchedule::Create(
      {.mean_gbit_per_s = 0.04, .shortest = 50ms, .longest = 200ms, .length = 1s, .seed = Seed(3)});
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  Transfer transfer(*link, clock_);
  transfer.ReceiveUntil(clock_.Now() + 200ms);
  const Instant begin = clock_.Now() + 50ms;
  auto rate = VariableRate::Start([&](double r) { return link->SetRate(r); }, *schedule, begin, clock_);
  ASSERT_TRUE(rate.has_value()) << rate.error().message;
  transfer.ReceiveUntil(begin);
  const auto received = static_cast<double>(transfer.ReceiveUntil(begin + schedule->length()));
  const Duration took = clock_.Now() - begin;
  const auto report = (*rate)->Stop();
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_GE(report->changes, std::ssize(schedule->steps()) / 2) << "even where some came too late";
  EXPECT_THAT(Shown(*link), HasSubstr("rate 40Mbit")) << "it is left at the mean";
  const double allowed = schedule->MeanBetween(0s, took) * Seconds(took) * 1e9 / 8;
  // Each change fills the bucket anew: 70,000 bytes.
  EXPECT_LE(received, allowed * 1.2 + 70'000.0 * static_cast<double>(report->changes + 2));
  EXPECT_GE(received, allowed * 0.5) << "on a busy machine";
  RecordProperty("share_of_mean", std::to_string(received / allowed));
}

// Twenty datagrams of 8,042 bytes on the wire: all but the bucket's 70,000 bytes wait at 1 Mbit/s, and fit
// into the queue that the link was made with (70,000 bytes and 8 ms at 0.4 Gbit/s: 400,000).
TEST_F(NetworkLinkTest, LosesNothingThatWaitsWhenTheRateChanges) {
  const auto link = Make({.gbit_per_s = 0.4});
  if (link == nullptr) GTEST_SKIP() << reason_;
  ASSERT_TRUE(link->SetRate(0.001).has_value());
  const auto before = link->ReadCounters();
  ASSERT_TRUE(before.has_value()) << before.error().message;
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{.sin_family = AF_INET, .sin_port = htons(9)};
  ::inet_pton(AF_INET, link->far_address().c_str(), &far.sin_addr);
  const std::string datagram(8000, 'd');
  for (int i = 0; i < 20; ++i)
    ::sendto(socket.get(), datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr*>(&far),
             sizeof far);
  EXPECT_GT(link->ReadCounters()->to_far.queued_bytes, 0U);
  for (const double rate : {0.002, 0.001, 0.003}) ASSERT_TRUE(link->SetRate(rate).has_value());
  ASSERT_TRUE(link->SetRate(0.4).has_value());
  const Instant until = clock_.Now() + 60s;
  while (link->ReadCounters()->to_far.queued_bytes > 0 && clock_.Now() < until)
    SleepUntil(clock_.Now() + 1ms);
  const auto after = link->ReadCounters();
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_GE(after->to_far.packets - before->to_far.packets, 20U);
  EXPECT_GE(after->to_far.bytes - before->to_far.bytes, 20U * 8042U);
  EXPECT_LE(after->to_far.bytes - before->to_far.bytes, 20U * 8042U + 2000U)
      << "and some of the kernel's own";
  EXPECT_EQ(after->to_far.dropped, 0U);
}

// The latency of tc is the queue beside the bucket, as time at the rate.
TEST_F(NetworkLinkTest, KeepsItsQueueWhateverTheRateBecomes) {
  const auto link = Make({.gbit_per_s = 0.4, .queue = 20ms});
  if (link == nullptr) GTEST_SKIP() << reason_;
  // 20 ms at 0.4 Gbit/s are 1,000,000 bytes: 2 s at 4 Mbit/s, 2 ms at 4 Gbit/s less what that bucket has
  // more.
  const auto is_two = [](const char* low, const char* high) {
    return ::testing::AnyOf(HasSubstr(low), HasSubstr(high));
  };
  ASSERT_TRUE(link->SetRate(0.004).has_value());
  EXPECT_THAT(Shown(*link), HasSubstr("rate 4Mbit"));
  EXPECT_THAT(Shown(*link), is_two("lat 2s", "lat 1.9"));
  ASSERT_TRUE(link->SetRate(4).has_value());
  EXPECT_THAT(Shown(*link), is_two("lat 1.9", "lat 2ms")) << "no larger for a higher rate";
  ASSERT_TRUE(link->SetRate(0.004).has_value());
  EXPECT_THAT(Shown(*link), is_two("lat 2s", "lat 1.9")) << "nor for good";
}

TEST_F(NetworkLinkTest, HoldsABucketAtLeastWhateverTheQueueIs) {
  const auto link = Make({.gbit_per_s = 0.01, .queue = 100us});
  if (link == nullptr) GTEST_SKIP() << reason_;
  ASSERT_TRUE(link->SetRate(50).has_value());  // its bucket has 981,250 bytes, the queue 70,125
  EXPECT_THAT(Shown(*link), HasSubstr("rate 50Gbit"));
  EXPECT_THAT(Shown(*link), ::testing::Not(HasSubstr("limit 70125b"))) << "tc tells a queue below the bucket";
}

TEST_F(NetworkLinkTest, DelaysWhereTheKernelCanAndSaysWhereItCannot) {
  auto link = NetworkLink::Create({.delay = 20ms}, clock_);
  if (!link) {
    EXPECT_EQ(link.error().code, ErrorCode::kUnsupported);
    if (Make() != nullptr) {  // it is the delay that is missing, and not the right
      EXPECT_THAT(link.error().message, HasSubstr("unless it has netem (CONFIG_NET_SCH_NETEM"));
    }
    GTEST_SKIP() << link.error().message;
  }
  const Instant begin = clock_.Now();
  EXPECT_FALSE(AskHttp("http://" + (*link)->far_address() + ":8000/", 10s).has_value());
  EXPECT_GE(clock_.Now() - begin, 40ms) << "there and back";
  ASSERT_TRUE((*link)->SetRate(1).has_value());
  EXPECT_TRUE((*link)->ReadCounters().has_value());
}

TEST_F(NetworkLinkTest, StandsBesideAnotherAndLeavesNothing) {
  auto one = Make(), two = Make();
  if (one == nullptr || two == nullptr) GTEST_SKIP() << reason_;
  const std::string device = DeviceOf(*one);
  EXPECT_NE(device, DeviceOf(*two));
  EXPECT_NE(one->far_address(), two->far_address());
  EXPECT_TRUE(DeviceIsThere(device));
  one.reset();
  EXPECT_FALSE(DeviceIsThere(device));
  EXPECT_TRUE(DeviceIsThere(DeviceOf(*two)));
}

}  // namespace
}  // namespace weir::launch
