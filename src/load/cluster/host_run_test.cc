#include "load/cluster/host_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/seed.h"

namespace weir::load {
namespace {

// Answers every millisecond, of times that `random` gives.
HostRun MakeRun(int answers, uint64_t seed) {
  HostRun run;
  Random random(seed);
  for (int i = 0; i < answers; ++i) {
    const Instant planned = Instant(10s) + i * 1ms;
    const auto took = Duration(static_cast<int64_t>(random.Uniform(1e5, 9e6)));
    run.played.tally.Add({.planned = planned,
                          .sent = planned + 2us,
                          .first_byte = planned + took,
                          .done = planned + took,
                          .send = 3us,
                          .request = 0,
                          .outcome = Outcome::kAnswered},
                         Instant(10s));
    run.played.tally.done_series.Add(planned - Instant(10s), 1);
  }
  run.played.tally.answered_within = answers;
  run.played.measured_s = 2;
  run.played.requests = {.begun = answers + 1, .answered = answers};
  run.played.errors = {"a\xff"};
  run.environment.steal_percent = 0.5;
  run.server.success = {.count = static_cast<uint64_t>(answers), .total = 5ms};
  run.server_share = ServerShare{.counted = 30, .ours_at_most = answers};
  run.calls = {{.server = "http://a\xff", .answered = 7, .failed = 1, .moved = 2}};
  return run;
}

TEST(HostRun, ComesBackFromItsMessage) {
  const HostRun run = MakeRun(700, 1);
  const auto read = HostRunFrom(ToMessage(run));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->played.tally.ended, run.played.tally.ended);
  EXPECT_EQ(read->played.tally.response.Buckets(), run.played.tally.response.Buckets());
  EXPECT_EQ(read->played.tally.send.count(), 700);
  EXPECT_EQ(read->played.tally.response_series.width(), run.played.tally.response_series.width());
  EXPECT_EQ(read->played.errors, run.played.errors);
  EXPECT_EQ(read->environment.steal_percent, 0.5);
  EXPECT_EQ(read->environment.rate, std::nullopt);
  EXPECT_EQ(read->server.success.total, 5ms);
  EXPECT_EQ(read->server_share, run.server_share);
  ASSERT_EQ(read->calls.size(), 1);
  EXPECT_EQ(read->calls[0].server, "http://a\xff");
  EXPECT_EQ(read->calls[0].moved, 2);
}

TEST(HostRun, NamesAKeyThatIsMissing) {
  cluster::Message message = ToMessage(MakeRun(3, 1));
  message.body.erase("measured_s");
  const auto read = HostRunFrom(message);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::HasSubstr("measured_s"));
}

TEST(MergeRuns, GivesThePercentilesOfThePooledRequests) {
  const std::vector<HostRun> runs = {MakeRun(400, 1), MakeRun(600, 2)};
  stats::Histogram pooled = runs[0].played.tally.response;
  pooled.Merge(runs[1].played.tally.response);
  const RunOutcome merged = MergeRuns(runs);
  for (const double p : {0.5, 0.9, 0.99, 0.999})
    EXPECT_EQ(merged.tally.response.Quantile(p), pooled.Quantile(p));
  EXPECT_DOUBLE_EQ(merged.throughput(), 500);
  EXPECT_EQ(merged.errors.size(), 1);
  EXPECT_EQ(merged.tally.planned(), 1000);
}

TEST(MergeRuns, JoinsTheSeriesSliceBySlice) {
  HostRun fine = MakeRun(100, 1), coarse = MakeRun(2000, 2);  // the second has wider slices
  const RunOutcome merged = MergeRuns({fine, coarse});
  int64_t count = 0;
  for (const Series::Slice& slice : merged.tally.done_series.slices()) count += slice.count;
  EXPECT_EQ(count, 2100);
  EXPECT_EQ(merged.tally.done_series.width(), coarse.played.tally.done_series.width());
}

TEST(JudgeRuns, CountsTheRequestsOfAllHosts) {
  const std::vector<HostRun> runs = {MakeRun(20, 1), MakeRun(20, 2)};  // 30 are needed
  EXPECT_EQ(JudgeRuns({runs[0]}, runs[0].played, std::nullopt).latency.standing, results::Standing::kSuspect);
  EXPECT_EQ(JudgeRuns(runs, MergeRuns(runs), std::nullopt).latency.standing, results::Standing::kValid);
}

TEST(JudgeRuns, HoldsEachMachineAgainstTheWhole) {
  std::vector<HostRun> runs = {MakeRun(400, 1), MakeRun(600, 2)};
  runs[1].environment.steal_percent = 50;
  const Claims claims = JudgeRuns(runs, MergeRuns(runs), std::nullopt);
  ASSERT_EQ(claims.latency.causes.size(), 1);
  EXPECT_EQ(claims.latency.causes.front().reason, results::Reason::kSteal);
}

TEST(MergeShares, TakesTheRequestsOfAllHostsForOurs) {
  HostRun one = MakeRun(10, 1), two = MakeRun(20, 1);
  EXPECT_EQ(MergeShares({one, two}), (ServerShare{.counted = 30, .ours_at_most = 30}));
  one.server_share.reset();
  two.server_share.reset();
  EXPECT_EQ(MergeShares({one, two}), std::nullopt);
}

TEST(ShareOf, DividesConcurrencyAndRequestsWithoutLoss) {
  int in_flight = 0;
  int64_t requests = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const auto share = ShareOf(Concurrency{.in_flight = 8}, 100, rank, 3);
    in_flight += std::get<Concurrency>(share->scenario).in_flight;
    requests += share->requests;
  }
  EXPECT_EQ(in_flight, 8);
  EXPECT_EQ(requests, 100);
  EXPECT_FALSE(ShareOf(Concurrency{.in_flight = 2}, 0, 0, 3));
  EXPECT_FALSE(ShareOf(Concurrency{.in_flight = 8}, 2, 0, 3));
}

TEST(ShareOf, DividesARateIntoSharesOfOneSchedule) {
  const auto share = ShareOf(Rate{.per_second = 100, .most_in_flight = 10}, 0, 1, 2);
  const auto& rate = std::get<Rate>(share->scenario);
  EXPECT_EQ(rate.per_second, 50);
  EXPECT_EQ(rate.most_in_flight, 5);
  EXPECT_EQ(rate.share, (ScheduleShare{.every = 2, .first = 1}));
}

}  // namespace
}  // namespace weir::load
