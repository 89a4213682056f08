#include "load/generator/ledger.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

namespace weir::load {
namespace {

constexpr Instant kStart(100s);

Ledger Make(Ledger::Options options) { return Ledger(options, kStart); }

// Planned, sent at once, and answered after `time`.
void Answer(Ledger& ledger, Instant planned, Duration time, Outcome outcome = Outcome::kAnswered) {
  const auto ticket = ledger.Plan(planned, planned);
  ASSERT_TRUE(ticket.has_value());
  const Instant done = planned + time;
  ledger.Ended(*ticket, {.planned = planned,
                         .sent = planned,
                         .first_byte = done,
                         .done = done,
                         .request = 0,
                         .outcome = outcome});
}

TEST(Ledger, MeasuresWhatIsPlannedAfterTheWarmUp) {
  Ledger ledger = Make({.warm_up = 1s, .length = 10s});
  Answer(ledger, kStart, 1ms);
  Answer(ledger, kStart + 999ms, 1ms);
  EXPECT_EQ(ledger.phase(), Ledger::Phase::kWarmUp);
  Answer(ledger, kStart + 1s, 1ms);
  EXPECT_EQ(ledger.phase(), Ledger::Phase::kMeasuring);
  EXPECT_EQ(ledger.from(), kStart + 1s);
  EXPECT_EQ(ledger.to(), kStart + 11s);
  EXPECT_EQ(ledger.warm_up_requests(), 2);
  EXPECT_EQ(ledger.tally().planned(), 1);
}

TEST(Ledger, SplitsWhatIsAnsweredAndMeasuredAlone) {
  Ledger ledger = Make({.warm_up = 1s, .length = 10s});
  const auto answer = [&](Instant planned, Outcome outcome) {
    const auto ticket = ledger.Plan(planned, planned);
    ASSERT_TRUE(ticket.has_value());
    const Instant done = planned + 5ms;
    ledger.Ended(*ticket,
                 {.planned = planned,
                  .sent = planned,
                  .first_byte = done,
                  .done = done,
                  .request = 0,
                  .outcome = outcome},
                 infer::ServerDurations{.queue = 2ms});
  };
  answer(kStart, Outcome::kAnswered);
  EXPECT_EQ(ledger.tally().split.count(), 0) << "it was the warm-up";
  answer(kStart + 1s, Outcome::kAnswered);
  answer(kStart + 2s, Outcome::kWrongAnswer);
  Answer(ledger, kStart + 3s, 5ms);
  EXPECT_EQ(ledger.tally().split.count(), 1);
  EXPECT_DOUBLE_EQ(ledger.tally().split.Mean()->of(SplitPart::kQueue), 2e6);
}

// The first one's answer came before the second was sent, and was told of after that.
TEST(Ledger, CountsNoRequestAsInFlightAfterItsAnswerCame) {
  Ledger ledger = Make({.length = 10s});
  const auto first = ledger.Plan(kStart, kStart);
  const auto second = ledger.Plan(kStart + 3s, kStart + 3s);
  ASSERT_TRUE(first && second);
  const auto end = [&](const Ledger::Ticket& ticket, Instant done) {
    ledger.Ended(ticket, {.planned = ticket.taken, .sent = ticket.taken, .first_byte = done, .done = done});
  };
  end(*first, kStart + 2s);
  end(*second, kStart + 7s);
}

TEST(Ledger, AddsUpWhatPlacesStoodEmpty) {
  Ledger ledger = Make({.warm_up = 1s, .length = 10s});
  for (const auto& [at, empty] :
       {std::pair<Duration, Duration>(0s, 50ms), {2s, 900us}, {3s, 20ms}, {4s, 30ms}})
    EXPECT_TRUE(ledger.Plan(kStart + at, kStart + at, empty));
  EXPECT_DOUBLE_EQ(ledger.tally().empty_seconds, 0.05)
      << "in the measured time, and what is not just waking up";
}

TEST(Ledger, WarmsUpByCountToo) {
  Ledger ledger = Make({.warm_up = 0s, .warm_up_requests = 2, .length = 1s});
  Answer(ledger, kStart, 1ms);
  Answer(ledger, kStart + 1s, 1ms);
  Answer(ledger, kStart + 2s, 1ms);
  EXPECT_EQ(ledger.from(), kStart + 2s);
}

TEST(Ledger, IsOverAtTheEndThatWasFixedBefore) {
  Ledger ledger = Make({.length = 1s});
  Answer(ledger, kStart, 1ms);
  Answer(ledger, kStart + 999ms, 5ms);
  EXPECT_FALSE(ledger.Plan(kStart + 1s, kStart + 1s).has_value());
  EXPECT_EQ(ledger.phase(), Ledger::Phase::kOver);
  EXPECT_EQ(ledger.to(), kStart + 1s);
  EXPECT_EQ(ledger.tally().answered(), 2);
  EXPECT_EQ(ledger.tally().answered_within, 1);  // the other came after the end
}

TEST(Ledger, LetsNoRequestLeaveWellAfterTheEnd) {
  Ledger ledger = Make({.length = 1s});
  Answer(ledger, kStart, 1ms);
  EXPECT_TRUE(ledger.Plan(kStart + 999ms, kStart + 1s + 5ms).has_value());
  EXPECT_FALSE(ledger.Plan(kStart + 999ms, kStart + 1s + 50ms).has_value());
  EXPECT_TRUE(ledger.Unsent(kStart + 999ms));
  EXPECT_FALSE(ledger.Unsent(kStart + 1s));
  EXPECT_EQ(ledger.tally().of(Outcome::kUnsent), 1);
}

TEST(Ledger, CountsRequestsWhereTheyAreTheMeasure) {
  Ledger ledger = Make({.requests = 2});
  Answer(ledger, kStart, 1ms);
  Answer(ledger, kStart + 1h, 1ms);
  EXPECT_FALSE(ledger.Plan(kStart + 2h, kStart + 2h).has_value());
  EXPECT_EQ(ledger.tally().answered(), 2);
  EXPECT_TRUE(ledger.finished());
  EXPECT_EQ(ledger.to(), kStart + 1h) << "the last was planned";
  EXPECT_EQ(ledger.tally().answered_within, 1) << "in that hour";
  EXPECT_FALSE(ledger.Unsent(kStart + 2h));
}

TEST(Ledger, ByCountEndsWithTheLastAnswerWhereLittleWasAnsweredBefore) {
  Ledger ledger = Make({.requests = 1});
  const auto ticket = ledger.Plan(kStart, kStart);
  ASSERT_TRUE(ticket.has_value());
  EXPECT_FALSE(ledger.Plan(kStart + 1s, kStart + 1s).has_value());
  EXPECT_EQ(ledger.phase(), Ledger::Phase::kOver);
  EXPECT_FALSE(ledger.finished());
  const Instant done = kStart + 5s;
  ledger.Ended(*ticket, {.planned = kStart, .sent = kStart, .first_byte = done, .done = done});
  EXPECT_TRUE(ledger.finished());
  EXPECT_EQ(ledger.to(), done);
  EXPECT_EQ(ledger.tally().answered_within, 1);
}

// Two in flight all the time, each answered after 2 s, one a second.
TEST(Ledger, ByCountMeasuresUntilTheLastIsPlanned) {
  Ledger ledger = Make({.requests = 10});
  const auto sample = [](Instant planned) {
    return Sample{.planned = planned, .sent = planned, .first_byte = planned, .done = planned + 2s};
  };
  std::deque<std::pair<Ledger::Ticket, Instant>> out;
  for (int i = 0; i < 10; ++i) {
    const Instant now = kStart + i * 1s;
    if (out.size() == 2) {
      ledger.Ended(out.front().first, sample(out.front().second));
      out.pop_front();
    }
    out.emplace_back(*ledger.Plan(now, now), now);
  }
  EXPECT_EQ(ledger.to(), kStart + 9s);
  EXPECT_FALSE(ledger.finished());
  for (const auto& [ticket, planned] : out) ledger.Ended(ticket, sample(planned));
  ledger.End(kStart + 20s);
  EXPECT_TRUE(ledger.finished());
  EXPECT_EQ(ledger.to(), kStart + 9s);
  EXPECT_EQ(ledger.tally().answered(), 10);
  EXPECT_EQ(ledger.tally().answered_within, 8);
}

TEST(Ledger, EndsBeforeItHasMeasuredAnything) {
  Ledger ledger = Make({.warm_up = 10s, .length = 1s});
  Answer(ledger, kStart, 1ms);
  ledger.End(kStart + 2s);
  EXPECT_EQ(ledger.from(), ledger.to());
  EXPECT_EQ(ledger.tally().planned(), 0);
  EXPECT_FALSE(ledger.Plan(kStart + 3s, kStart + 3s).has_value());
}

TEST(Ledger, EndsEarlyWhenAsked) {
  Ledger ledger = Make({.length = 10s});
  Answer(ledger, kStart, 1ms);
  ledger.End(kStart + 4s);
  ledger.End(kStart + 5s);
  EXPECT_EQ(ledger.to(), kStart + 4s);
}

TEST(Ledger, KeepsTheAreaUnderWhatIsInFlight) {
  Ledger ledger = Make({.length = 10s});
  const auto first = ledger.Plan(kStart, kStart);
  const auto second = ledger.Plan(kStart + 2s, kStart + 2s);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(ledger.in_flight(), 2);
  const auto sample = [](Instant sent, Instant done) {
    return Sample{.planned = sent, .sent = sent, .first_byte = done, .done = done};
  };
  ledger.Ended(*first, sample(kStart, kStart + 3s));        // 2 s alone, 1 s with the second
  ledger.Ended(*second, sample(kStart + 2s, kStart + 6s));  // 3 s more alone
  EXPECT_EQ(ledger.in_flight(), 0);
  const auto across = ledger.Plan(kStart + 9s, kStart + 9s);
  ASSERT_TRUE(across.has_value());
  ledger.Ended(*across, sample(kStart + 9s, kStart + 20s));
  ledger.End(kStart + 20s);
}

TEST(Ledger, CountsEveryOutcomeApart) {
  Ledger ledger = Make({.length = 10s});
  Answer(ledger, kStart, 1ms);
  Answer(ledger, kStart, 1ms, Outcome::kRefused);
  Answer(ledger, kStart, 1ms, Outcome::kTimedOut);
  const Tally& tally = ledger.tally();
  EXPECT_EQ(tally.planned(), 3);
  EXPECT_EQ(tally.failed(), 2);
  EXPECT_EQ(tally.of(Outcome::kRefused), 1);
  EXPECT_EQ(tally.response.count(), 1);
  EXPECT_EQ(tally.slip.count(), 3);
}

}  // namespace
}  // namespace weir::load
