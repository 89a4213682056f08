#include "load/verdict/server_share.h"

#include <gtest/gtest.h>

#include "load/generator/ledger.h"

namespace weir::load {
namespace {

TEST(ServerShare, IsAllOursWhereTheServerCountsNoMoreThanWeSent) {
  EXPECT_EQ(CompareCounts(1000, {.begun = 0, .answered = 0}, {.begun = 1000, .answered = 1000}),
            (ServerShare{.counted = 1000, .ours_at_most = 1000}));
  // Eight are on their way at each look: the server may count those of the first, and not those of the
  // second.
  EXPECT_EQ(CompareCounts(1008, {.begun = 108, .answered = 100}, {.begun = 1108, .answered = 1100})
                .others_at_least(),
            0);
}

TEST(ServerShare, TellsWhatOthersSentAtLeast) {
  const ServerShare share =
      CompareCounts(2000, {.begun = 108, .answered = 100}, {.begun = 1108, .answered = 1100});
  EXPECT_EQ(share.ours_at_most, 1008);
  EXPECT_EQ(share.others_at_least(), 992);
  EXPECT_DOUBLE_EQ(share.others_share(), 0.496);
}

TEST(ServerShare, IsNeverMoreThanAllNorLessThanNothing) {
  EXPECT_EQ(CompareCounts(10, {}, {.begun = 500, .answered = 500}).others_at_least(), 0)
      << "a server behind a balancer counts a part of ours";
  EXPECT_EQ(CompareCounts(10, {.begun = 5, .answered = 5}, {.begun = 5, .answered = 5}).others_share(), 1);
  EXPECT_EQ(CompareCounts(0, {}, {}).others_share(), 0);
}

TEST(ServerShare, AddsUpOverRepeats) {
  ServerShare sum{.counted = 10, .ours_at_most = 10};
  sum += {.counted = 30, .ours_at_most = 10};
  EXPECT_EQ(sum.others_at_least(), 20);
  EXPECT_DOUBLE_EQ(sum.others_share(), 0.5);
}

// A request that nobody answered may still be counted by the server, at any later moment.
TEST(ServerShare, TheLedgerCountsAsAnsweredOnlyWhatTheServerAnswered) {
  const Instant start(100s);
  Ledger ledger({.warm_up = 1s, .length = 10s}, start);
  const auto end = [&](Outcome outcome) {
    const auto ticket = ledger.Plan(start, start);
    ASSERT_TRUE(ticket);
    ledger.Ended(*ticket, {.planned = start,
                           .sent = start,
                           .first_byte = start,
                           .done = start,
                           .request = 0,
                           .outcome = outcome});
  };
  for (const Outcome outcome :
       {Outcome::kAnswered, Outcome::kWrongAnswer, Outcome::kRefused, Outcome::kRejected, Outcome::kFailed})
    end(outcome);
  EXPECT_EQ(ledger.so_far(), (RequestsSoFar{.begun = 5, .answered = 5})) << "the warm-up's too";
  end(Outcome::kTimedOut);
  end(Outcome::kNoServer);
  EXPECT_EQ(ledger.so_far(), (RequestsSoFar{.begun = 7, .answered = 5}));
}

}  // namespace
}  // namespace weir::load
