#include "oip/grpc/streams.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weir::oip {
namespace {

constexpr int kData = 0, kHeaders = 1, kReset = 3;

std::string FrameOf(int type, int flags, uint32_t stream, size_t length = 4) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(length >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift & 0xff);
  return frame + std::string(length, 'x');
}

class Connection {
 public:
  Connection(const std::shared_ptr<GrpcCalls>& all, const Clock& clock) : streams(all, clock) {
    Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  }
  bool Receive(const std::string& bytes) { return streams.Received(std::as_bytes(std::span(bytes))); }
  void Send(const std::string& bytes) { streams.Sent(std::as_bytes(std::span(bytes))); }
  bool Begin() { return Receive(FrameOf(kHeaders, 4, last += 2)); }
  bool BeginAndReset() { return Begin() && Receive(FrameOf(kReset, 0, last)); }
  // Begins and resets calls until it is refused, or `most`.
  int Flood(int most) {
    for (int i = 0; i < most; ++i) {
      if (!BeginAndReset()) return i;
    }
    return most;
  }

  uint32_t last = static_cast<uint32_t>(-1);
  GrpcStreams streams;
};

struct GrpcStreamsTest : testing::Test {
  ManualClock clock;
  std::shared_ptr<GrpcCalls> all = std::make_shared<GrpcCalls>(size_t{256} << 20);
};

TEST_F(GrpcStreamsTest, FindsFramesWhateverThePieces) {
  const std::string bytes = FrameOf(4, 0, 0, 12) + FrameOf(kHeaders, 4, 1, 70) + FrameOf(kData, 1, 1, 300) +
                            FrameOf(kHeaders, 5, 3, 0) + FrameOf(kReset, 0, 1) + FrameOf(kHeaders, 5, 5, 9);
  for (size_t piece = 1; piece < 80; ++piece) {
    Connection one(all, clock);
    for (size_t at = 0; at < bytes.size(); at += piece) one.Receive(bytes.substr(at, piece));
    EXPECT_EQ(one.streams.open(), 2) << piece;
  }
}

TEST_F(GrpcStreamsTest, RefusesAClientThatDropsCallsByTheThousand) {
  Connection one(all, clock);
  EXPECT_NEAR(one.Flood(100'000), 2048, 70);
  EXPECT_EQ(one.streams.refusal(), GrpcRefusal::kResets);
  EXPECT_FALSE(one.Begin()) << "nothing that it sends is passed on";
}

TEST_F(GrpcStreamsTest, LeavesAClientAloneThatCancelsWhatHasStarted) {
  Connection one(all, clock);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(one.Begin());
    one.streams.Started();
    ASSERT_TRUE(one.Receive(FrameOf(kReset, 0, one.last)));
  }
  EXPECT_EQ(one.streams.open(), 0);
}

TEST_F(GrpcStreamsTest, ForgivesWhoCancelsNowAndThen) {
  Connection one(all, clock);
  for (int second = 0; second < 1000; ++second) {
    ASSERT_EQ(one.Flood(100), 100) << second;
    clock.Advance(1s);
  }
}

TEST_F(GrpcStreamsTest, SharesTheMemoryBetweenConnections) {
  EXPECT_EQ(all->most, 8192);
  std::vector<std::unique_ptr<Connection>> many;
  int64_t begun = 0;
  for (int i = 0; i < 100; ++i) {
    many.push_back(std::make_unique<Connection>(all, clock));
    for (int j = 0; j < 1000 && many.back()->Begin(); ++j) ++begun;
  }
  // The n-th to come has 1/n of the calls, so together they have ln(n) times as many at most.
  EXPECT_LE(begun, 4 * 8192);
  EXPECT_EQ(many.back()->streams.refusal(), GrpcRefusal::kCalls);
  Connection honest(all, clock);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(honest.Begin());
  many.clear();
  EXPECT_EQ(all->calls, 64);
  EXPECT_EQ(all->connections, 1);
}

TEST_F(GrpcStreamsTest, CountsNoCallThatWasAnswered) {
  Connection one(all, clock);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(one.Begin());
    one.streams.Started();
    one.Send(FrameOf(kHeaders, 4, one.last) + FrameOf(kData, 0, one.last) + FrameOf(kHeaders, 5, one.last));
  }
  EXPECT_EQ(one.streams.open(), 0);
  EXPECT_EQ(all->calls, 0);
}

TEST_F(GrpcStreamsTest, CountsDroppedCallsForAWhile) {
  Connection one(all, clock);
  one.Flood(1000);
  EXPECT_GT(all->calls, 900);
  clock.Advance(10s);
  one.streams.Look(clock.Now());
  EXPECT_EQ(all->calls, 0);
}

}  // namespace
}  // namespace weir::oip
