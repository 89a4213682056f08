#include "oip/grpc/admission.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::oip {
namespace {

constexpr uint64_t kMiB = 1 << 20;
const Instant kStart(100s);

using Closing = GrpcAdmission::Closing;

TEST(GrpcAdmission, TakesAsManyConnectionsAsItMay) {
  GrpcAdmission admission({.max_connections = 3, .max_per_address = 3});
  for (GrpcAdmission::Id id = 1; id <= 3; ++id) EXPECT_FALSE(admission.Offer(id, "a", kStart).refused);
  EXPECT_EQ(admission.Offer(4, "b", kStart).refused, GrpcRefusal::kConnections);
  EXPECT_EQ(admission.size(), 3u);
  admission.Remove(2);
  EXPECT_FALSE(admission.Offer(5, "b", kStart).refused);
}

TEST(GrpcAdmission, LeavesRoomForOtherAddresses) {
  GrpcAdmission admission({.max_connections = 8});
  for (GrpcAdmission::Id id = 1; id <= 6; ++id) EXPECT_FALSE(admission.Offer(id, "a", kStart).refused);
  EXPECT_EQ(admission.Offer(7, "a", kStart).refused, GrpcRefusal::kAddress);
  EXPECT_FALSE(admission.Offer(8, "b", kStart).refused);
  EXPECT_FALSE(admission.Offer(9, "c", kStart).refused);
  admission.Remove(1);
  EXPECT_FALSE(admission.Offer(10, "a", kStart).refused);
}

TEST(GrpcAdmission, ClosesASilentConnectionForANewOneOnceItIsOldEnough) {
  GrpcAdmission admission({.max_connections = 2, .max_per_address = 2});
  admission.Offer(1, "a", kStart);
  admission.Offer(2, "b", kStart);
  admission.Observe(1, {.received = 200, .messages = 1, .message_bytes = 100}, kStart);
  admission.Observe(2, {.received = 60}, kStart);
  EXPECT_EQ(admission.Offer(3, "c", kStart + 900ms).refused, GrpcRefusal::kConnections);
  const auto decision = admission.Offer(4, "c", kStart + 1s);
  EXPECT_FALSE(decision.refused);
  EXPECT_EQ(decision.instead, (Closing{2, GrpcRefusal::kSilent}));
  // Connection 2 is named once, and connection 1 has sent a request.
  EXPECT_EQ(admission.Offer(5, "c", kStart + 1500ms).refused, GrpcRefusal::kConnections);
  EXPECT_FALSE(admission.MakeRoom(kStart + 1500ms));
}

TEST(GrpcAdmission, ClosesASilentConnectionOfTheSameAddressOnly) {
  GrpcAdmission admission({.max_connections = 9, .max_per_address = 1});
  admission.Offer(1, "b", kStart);
  admission.Offer(2, "a", kStart);
  EXPECT_EQ(admission.Offer(3, "a", kStart + 2s).instead, (Closing{2, GrpcRefusal::kSilent}));
}

TEST(GrpcAdmission, CountsBytesOfUnfinishedMessagesAlone) {
  GrpcAdmission admission({});
  admission.Offer(1, "a", kStart);
  admission.Observe(1, {.received = 10 * kMiB}, kStart);
  EXPECT_EQ(admission.unfinished_bytes(), 10 * kMiB);
  // The message is complete, and the next one has begun.
  admission.Observe(1, {.received = 30 * kMiB, .messages = 1, .message_bytes = 20 * kMiB}, kStart);
  EXPECT_LE(admission.unfinished_bytes(), 10 * kMiB);
  EXPECT_GE(admission.unfinished_bytes(), 8 * kMiB);
  admission.Remove(1);
  EXPECT_EQ(admission.unfinished_bytes(), 0u);
}

TEST(GrpcAdmission, AllowsForHeadersPingsAndWindowUpdatesForEver) {
  GrpcAdmission admission({});
  admission.Offer(1, "a", kStart);
  GrpcAdmission::Traffic traffic;
  Instant now = kStart;
  for (int i = 0; i < 100'000; ++i) {
    now += 10ms;
    traffic.received += 2000 + 100;  // headers of 2,000 bytes
    traffic.messages += 1;
    traffic.message_bytes += 100;
    admission.Observe(1, traffic, now);
    ASSERT_LE(admission.unfinished_bytes(), 4096u);
  }
  for (int i = 0; i < 100'000; ++i) {
    now += 1s;
    traffic.received += 34;  // pings
    admission.Observe(1, traffic, now);
    ASSERT_TRUE(admission.Poll(now).empty());
  }
  for (int i = 0; i < 1000; ++i) {
    traffic.received += 26 * 1000;  // window updates of a client that takes large responses
    traffic.sent += 16384 * 1000;
    admission.Observe(1, traffic, now);
    ASSERT_TRUE(admission.Poll(now).empty());
  }
  EXPECT_LE(admission.unfinished_bytes(), 4096u);
}

TEST(GrpcAdmission, ClosesAConnectionWhoseMessageStalls) {
  GrpcAdmission admission({.message_timeout = 30s});
  admission.Offer(1, "a", kStart);
  admission.Offer(2, "b", kStart);
  GrpcAdmission::Traffic held{.received = 60 * kMiB}, trickle{.received = 60 * kMiB};
  Instant now = kStart;
  std::vector<Closing> closed;
  for (; closed.empty() && now < kStart + 100s; now += 250ms) {
    trickle.received += 25;  // 100 bytes a second are no progress
    admission.Observe(1, held, now);
    admission.Observe(2, trickle, now);
    closed = admission.Poll(now);
  }
  EXPECT_EQ(closed, (std::vector<Closing>{{1, GrpcRefusal::kStalled}, {2, GrpcRefusal::kStalled}}));
  EXPECT_GE(now - kStart, 30s);
  EXPECT_LE(now - kStart, 31s);
  EXPECT_TRUE(admission.Poll(now).empty()) << "each is named once";
}

TEST(GrpcAdmission, ClosesAConnectionThatHoldsAMessageBehindSmallOnes) {
  GrpcAdmission admission({.message_timeout = 30s});
  admission.Offer(1, "a", kStart);
  GrpcAdmission::Traffic traffic{.received = 60 * kMiB};
  Instant now = kStart;
  std::vector<Closing> closed;
  for (; closed.empty() && now < kStart + 100s; now += 250ms) {
    traffic.received += 1000;
    traffic.message_bytes += 1000;
    traffic.messages += 1;
    admission.Observe(1, traffic, now);
    closed = admission.Poll(now);
  }
  EXPECT_EQ(closed, (std::vector<Closing>{{1, GrpcRefusal::kStalled}}));
}

TEST(GrpcAdmission, LetsASlowMessageGoOnButNotForEver) {
  GrpcAdmission admission({.message_timeout = 30s});
  admission.Offer(1, "a", kStart);
  GrpcAdmission::Traffic traffic;
  Instant now = kStart;
  std::vector<Closing> closed;
  for (; closed.empty() && now < kStart + 1000s; now += 250ms) {
    traffic.received += 5000;  // 20,000 bytes a second
    admission.Observe(1, traffic, now);
    closed = admission.Poll(now);
  }
  EXPECT_EQ(closed, (std::vector<Closing>{{1, GrpcRefusal::kSlow}}));
  EXPECT_GE(now - kStart, 300s);
  EXPECT_LE(now - kStart, 302s);
}

TEST(GrpcAdmission, LeavesALinkAloneThatIsFullOfLargeMessages) {
  GrpcAdmission admission({.message_timeout = 30s});
  admission.Offer(1, "a", kStart);
  GrpcAdmission::Traffic traffic;
  Instant now = kStart;
  for (int i = 0; i < 4 * 3600;
       ++i) {  // an hour at 4 MiB a second: a message of 40 MiB each 10 s, 8 at a time
    now += 250ms;
    traffic.received += kMiB;
    if (i >= 320 && i % 40 == 0) {
      traffic.messages += 1;
      traffic.message_bytes += 40 * kMiB - 20'000;
    }
    admission.Observe(1, traffic, now);
    ASSERT_TRUE(admission.Poll(now).empty()) << i;
  }
}

TEST(GrpcAdmission, ClosesTheOneWithMostUnfinishedBytesWhenThereAreTooMany) {
  GrpcAdmission admission({.max_bytes = 100 * kMiB});
  for (GrpcAdmission::Id id = 1; id <= 3; ++id) admission.Offer(id, "a", kStart);
  admission.Observe(1, {.received = 30 * kMiB}, kStart);
  admission.Observe(2, {.received = 60 * kMiB}, kStart);
  admission.Observe(3, {.received = 10 * kMiB}, kStart);
  EXPECT_TRUE(admission.Poll(kStart).empty());
  admission.Observe(3, {.received = 11 * kMiB}, kStart);
  EXPECT_EQ(admission.Poll(kStart), (std::vector<Closing>{{2, GrpcRefusal::kBytes}}));
  EXPECT_TRUE(admission.Poll(kStart).empty());
}

TEST(GrpcAdmission, DoubtsItsFiguresWhenThereAreManyUnfinishedBytes) {
  GrpcAdmission admission({.max_bytes = 100 * kMiB});
  admission.Offer(1, "a", kStart);
  admission.Offer(2, "a", kStart);
  admission.Observe(1, {.received = 30 * kMiB}, kStart);
  admission.Observe(2, {.received = 1000}, kStart);
  EXPECT_TRUE(admission.Suspects(kStart).empty());
  admission.Observe(1, {.received = 60 * kMiB}, kStart);
  EXPECT_EQ(admission.Suspects(kStart), std::vector<GrpcAdmission::Id>{1});
}

TEST(GrpcAdmission, ForgetsBytesOfAConnectionWithoutAnUnfinishedMessage) {
  GrpcAdmission admission({.message_timeout = 30s});
  admission.Offer(1, "a", kStart);
  Instant now = kStart;
  for (; admission.Suspects(now).empty(); now += 250ms) {
    ASSERT_LT(now, kStart + 30s);
    admission.Observe(1, {.received = 5 * kMiB}, now);  // the client has cancelled the call
  }
  EXPECT_EQ(admission.Suspects(now), std::vector<GrpcAdmission::Id>{1});
  EXPECT_TRUE(admission.Poll(now).empty());
  admission.Clear(1, now);
  EXPECT_EQ(admission.UnfinishedOf(1), 0u);
  for (; now < kStart + 100s; now += 250ms) {
    admission.Observe(1, {.received = 5 * kMiB}, now);
    ASSERT_TRUE(admission.Poll(now).empty());
  }
}

}  // namespace
}  // namespace weir::oip
