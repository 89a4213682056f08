#include "cluster/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/thread.h"
#include "cluster/socket.h"

namespace weir::cluster {
namespace {

constexpr char kSharedToken[] = "0123456789abcdef";

class HandshakesTest : public testing::Test {
 protected:
  UniqueFd Call() { return *Connect(address_, clock_.Now() + 10s, clock_); }

  // Says hello from another thread, as an agent does.
  std::jthread Agent(const char* token) {
    return StartThread("agent", [this, token](const std::stop_token&) {
      const auto connection = Connection::Open(Call(), Side::kCaller, token, clock_.Now() + 20s, clock_);
      if (!connection) return;
      (void)(*connection)->Send(word::Hello{.name = "a", .build = "b", .rank = {}, .world = 0});
      (void)(*connection)->Receive(clock_.Now() + 20s);  // until the other side ends it
    });
  }

  const SteadyClock clock_;
  const UniqueFd socket_ = *Listen({"127.0.0.1", 0});
  const Address address_{"127.0.0.1", *PortOf(socket_.get())};
  Handshakes handshakes_{kSharedToken, Handshake::Until::kFirstMessage, 20s, clock_};
};

TEST_F(HandshakesTest, SilentAndWrongOnesKeepNobodyOut) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(Call());
    if (i % 3 == 0) {
      ASSERT_TRUE(SendNow(silent.back().get(), "GET / HTTP/1.1\r\n\r\n"));
    }
    if (i % 20 == 0) {
      ASSERT_TRUE(handshakes_.Next(socket_.get(), clock_.Now()));
    }
  }
  const auto agent = Agent(kSharedToken);
  const Instant begin = clock_.Now();
  const auto connection = handshakes_.Next(socket_.get(), clock_.Now() + 20s);
  ASSERT_TRUE(connection);
  ASSERT_NE(*connection, nullptr);
  EXPECT_LT(clock_.Now() - begin, 5s);
  const auto hello = (*connection)->Receive(clock_.Now() + 10s);
  ASSERT_TRUE(hello && *hello);
  EXPECT_EQ(KindOf(**hello), "hello");
  EXPECT_GE(handshakes_.TakeRefusals().count, 100);
  (*connection)->Close();
}

TEST_F(HandshakesTest, AnotherTokenIsRefusedAndNamed) {
  const auto agent = Agent("fedcba9876543210");
  Handshakes::Refusals refusals;
  const Instant until = clock_.Now() + 20s;
  while (refusals.count == 0 && clock_.Now() < until) {
    const auto none = handshakes_.Next(socket_.get(), clock_.Now() + 50ms);
    ASSERT_TRUE(none && *none == nullptr);
    refusals = handshakes_.TakeRefusals();
  }
  EXPECT_EQ(refusals.count, 1);
  EXPECT_THAT(refusals.last.message, testing::HasSubstr("127.0.0.1: TLS"));
}

TEST_F(HandshakesTest, OneThatTakesTooLongIsEnded) {
  Handshakes soon(kSharedToken, Handshake::Until::kFirstMessage, 1ms, clock_);
  const UniqueFd silent = Call();
  Handshakes::Refusals refusals;
  const Instant until = clock_.Now() + 20s;
  while (refusals.count == 0 && clock_.Now() < until) {
    ASSERT_TRUE(soon.Next(socket_.get(), clock_.Now() + 50ms));
    refusals = soon.TakeRefusals();
  }
  EXPECT_EQ(refusals.last.code, ErrorCode::kDeadline);
}

}  // namespace
}  // namespace weir::cluster
