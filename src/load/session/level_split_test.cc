#include "load/session/level_split.h"

#include <gmock/gmock.h>

namespace weir::load {
namespace {

using ::testing::HasSubstr;

constexpr Instant kStart(100s);

// A level of `count` requests that slipped 1 ms, sent for 1 ms, had their first byte 10 ms after they began
// to leave and were done 2 ms later.
LevelResult Played(int count, const std::optional<infer::ServerDurations>& server = {}) {
  LevelResult level;
  for (int i = 0; i < count; ++i) {
    level.tally.Add({.planned = kStart,
                     .sent = kStart + 1ms,
                     .first_byte = kStart + 11ms,
                     .done = kStart + 13ms,
                     .send = 1ms},
                    kStart, server);
  }
  return level;
}

infer::PhaseTotals Counted(uint64_t requests, Duration each) {
  const auto count = static_cast<int64_t>(requests);
  return {.rows = requests,
          .batches = requests / 2,
          .success = {.count = requests, .total = each * count},
          .queue = {.count = requests, .total = 1ms * count},
          .compute_infer = {.count = requests, .total = 4ms * count}};
}

double Sum(const MeanSplit& split) {
  return split.slip + split.client_receive + split.client_send.value_or(0) + split.wire_and_wait +
         (split.server ? split.server->request_ms : 0);
}

TEST(ServerAccountOf, IsTheStatisticsWhereNothingElseIsReported) {
  LevelResult level = Played(100);
  EXPECT_FALSE(ServerAccountOf(level).times.has_value());
  EXPECT_EQ(ServerAccountOf(level).left_out, "");
  level.server = Counted(100, 6ms);
  const ServerAccount account = ServerAccountOf(level);
  ASSERT_TRUE(account.times.has_value());
  EXPECT_NEAR(account.times->request_ms, 6, 1e-9);
  EXPECT_NEAR(account.times->rows_per_batch, 2, 1e-9);
}

TEST(ServerAccountOf, IsLeftOutWhereOthersUsedTheServer) {
  LevelResult level = Played(100);
  level.server = Counted(200, 6ms);
  level.server_share = ServerShare{.counted = 200, .ours_at_most = 100};
  const ServerAccount account = ServerAccountOf(level);
  EXPECT_FALSE(account.times.has_value());
  EXPECT_THAT(account.left_out, HasSubstr("100 or more requests of other clients, 200 in all"));
}

TEST(ServerAccountOf, IsLeftOutWhereItIsLongerThanTheClientSaw) {
  LevelResult level = Played(100);
  level.server = Counted(100, 20ms);
  EXPECT_THAT(ServerAccountOf(level).left_out, HasSubstr("20.0 ms on average by the server's account"));
}

TEST(ServerAccountOf, PrefersTheDurationsOfTheResponses) {
  LevelResult level = Played(100, infer::ServerDurations{.receive = 1ms, .queue = 2ms, .compute_infer = 3ms});
  level.server = Counted(200, 6ms);
  level.server_share = ServerShare{.counted = 200, .ours_at_most = 100};
  const ServerAccount account = ServerAccountOf(level);
  ASSERT_TRUE(account.times.has_value());
  EXPECT_NEAR(account.times->receive_ms.value_or(0), 1, 1e-9);
  EXPECT_NEAR(account.times->queue_ms, 2, 1e-9);
  EXPECT_NEAR(account.times->rows_per_batch, 2, 1e-9) << "the statistics know the batches";
  EXPECT_NEAR(account.times->request_ms, 6, 1e-9);
}

TEST(MeanSplitOf, AddsUpToTheResponseTime) {
  LevelResult level = Played(100);
  level.server = Counted(100, 6ms);
  for (const auto& server : {std::optional<infer::MeanServerTimes>(), ServerAccountOf(level).times}) {
    const auto split = MeanSplitOf(level, server);
    ASSERT_TRUE(split.has_value());
    EXPECT_NEAR(split->slip, 1, 0.05);  // means of a histogram
    EXPECT_NEAR(split->client_receive, 2, 0.1);
    EXPECT_NEAR(Sum(*split), *MeanMs(level.tally.response), 1e-9);
  }
  EXPECT_FALSE(MeanSplitOf(LevelResult{}, {}).has_value());
}

TEST(MeanSplitOf, CountsSendingThatTheServerCountsOnce) {
  const LevelResult level = Played(10);
  infer::MeanServerTimes server;
  server.request_ms = *MeanMs(level.tally.first_byte) - 0.25;  // it began while the client was sending
  const auto split = MeanSplitOf(level, server);
  ASSERT_TRUE(split.has_value());
  EXPECT_NEAR(split->wire_and_wait, 0, 1e-9);
  EXPECT_NEAR(split->client_send.value_or(0), 0.25, 1e-9);
  EXPECT_NEAR(Sum(*split), *MeanMs(level.tally.response), 1e-9);
}

TEST(SlowestOf, NeedsEnoughRequestsForThePercentile) {
  const infer::ServerDurations server{.queue = 2ms};
  EXPECT_FALSE(SlowestOf(Played(20, server), 99).has_value());
  EXPECT_FALSE(SlowestOf(Played(2000), 99).has_value()) << "the server reports no durations";
  const auto slowest = SlowestOf(Played(2000, server), 99);
  ASSERT_TRUE(slowest.has_value());
  EXPECT_EQ(slowest->requests, 20);
  EXPECT_NEAR(slowest->mean.of(SplitPart::kQueue), 2e6, 1);
}

TEST(SlowPercentile, IsTheOneThatIsJudged) {
  EXPECT_EQ(SlowPercentile({}), 99);
  EXPECT_EQ(SlowPercentile({.percentile = 95}), 95);
}

}  // namespace
}  // namespace weir::load
