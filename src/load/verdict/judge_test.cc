#include "load/verdict/judge.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "load/generator/ledger.h"

namespace weir::load {
namespace {

using results::Reason;
using results::Standing;

constexpr Instant kStart(100s);

struct Shape {
  double seconds = 10, rate = 1000;
  std::function<Duration(double at)> response = [](double) { return Duration(2ms); };
  std::function<Duration(int number)> slip = [](int) { return Duration{}; };
  std::function<Outcome(int number)> outcome = [](int) { return Outcome::kAnswered; };
};

// A run as Play would tell it, of one request after the other.
RunOutcome Play(const Shape& shape) {
  Ledger ledger({.length = FromSeconds(shape.seconds)}, kStart);
  struct Out {
    Ledger::Ticket ticket;
    Sample sample;
  };
  std::multimap<Instant, Out> out;  // by their end
  const auto end_until = [&](Instant now) {
    while (!out.empty() && out.begin()->first <= now) {
      ledger.Ended(out.begin()->second.ticket, out.begin()->second.sample);
      out.erase(out.begin());
    }
  };
  for (int i = 0; i < shape.seconds * shape.rate; ++i) {
    const double at = i / shape.rate;
    const Instant planned = kStart + FromSeconds(at), sent = planned + shape.slip(i),
                  done = planned + shape.response(at);
    end_until(sent);
    const auto ticket = ledger.Plan(planned, sent);
    if (!ticket) break;
    out.emplace(done, Out{*ticket,
                          {.planned = planned,
                           .sent = sent,
                           .first_byte = done,
                           .done = done,
                           .request = 0,
                           .outcome = shape.outcome(i)}});
  }
  end_until(Instant::max());
  ledger.End(kStart + FromSeconds(shape.seconds));
  RunOutcome played;
  played.tally = ledger.tally();
  played.measured_s = shape.seconds;
  played.busiest_thread = 0.2;
  return played;
}

std::vector<Reason> Reasons(const results::Verdict& verdict) {
  std::vector<Reason> reasons;
  for (const results::Cause& cause : verdict.causes) reasons.push_back(cause.reason);
  return reasons;
}

TEST(Judge, FindsNothingWrongWithASteadyRun) {
  const Claims claims = Judge(Play({}), {.rate = 1000});
  EXPECT_EQ(claims.latency.standing, Standing::kValid);
  EXPECT_EQ(claims.throughput.standing, Standing::kValid);
  EXPECT_TRUE(claims.latency.causes.empty());
}

TEST(Judge, SaysWhyNothingWasMeasuredAndWhatHelps) {
  const auto evidence = [](const Environment& around, bool by_count) {
    RunOutcome played;
    played.warm_up_s = 1.5;
    played.by_count = by_count;
    const Claims claims = Judge(played, around);
    EXPECT_EQ(claims.throughput.standing, Standing::kInvalid);
    EXPECT_EQ(Reasons(claims.latency), std::vector{Reason::kTooFewSamples});
    return claims.latency.causes.front().evidence;
  };
  EXPECT_EQ(evidence({}, false),
            "0 answers, at least 30 are needed: the run ended after 1.5 s, when the requests of the warm-up "
            "were still out, and the next wait for their answers; a longer --duration leaves time for them");
  EXPECT_THAT(evidence({}, true), ::testing::Not(::testing::HasSubstr("--duration")));
  EXPECT_THAT(evidence({.rate = 0.1}, false), ::testing::HasSubstr("no request was due after the warm-up"));
}

TEST(Judge, SaysWhenRequestsLeftLate) {
  const RunOutcome played = Play({.slip = [](int i) { return i % 50 == 0 ? Duration(1500us) : Duration{}; }});
  const Claims claims = Judge(played, {.rate = 1000});
  EXPECT_EQ(claims.latency.standing, Standing::kInvalid);
  EXPECT_THAT(Reasons(claims.latency), testing::Contains(Reason::kGeneratorLate));
}

TEST(Judge, SuspectsALatencyOfWhichTheSlipIsALargePart) {
  const RunOutcome played = Play({.slip = [](int) { return Duration(200us); }});
  EXPECT_EQ(Judge(played, {.rate = 1000}).latency.standing, Standing::kSuspect);
}

TEST(Judge, RefusesAThroughputThatTheGeneratorLimits) {
  RunOutcome played = Play({});
  played.busiest_thread = 0.9;
  EXPECT_EQ(Judge(played, {}).throughput.standing, Standing::kInvalid);
  played.busiest_thread = 0.6;
  EXPECT_EQ(Judge(played, {}).throughput.standing, Standing::kSuspect);
  played.busiest_thread = 0.1;
  EXPECT_EQ(Judge(played, {}).throughput.standing, Standing::kValid);
}

TEST(Judge, SaysWhenPlacesStoodEmpty) {
  RunOutcome played = Play({});
  for (const auto& [share, standing] :
       {std::pair(0.05, Standing::kValid), {0.06, Standing::kSuspect}, {0.21, Standing::kInvalid}}) {
    played.empty_share = share;
    EXPECT_EQ(Judge(played, {}).throughput.standing, standing) << share;
    EXPECT_EQ(Judge(played, {}).latency.standing, standing) << share;
  }
  EXPECT_THAT(Reasons(Judge(played, {}).latency), testing::ElementsAre(Reason::kGeneratorLate));
}

TEST(Judge, HoldsTheGeneratorAgainstWhatItCanSend) {
  const RunOutcome played = Play({});  // 1,000 a second
  const auto judged = [&](double ceiling) { return Judge(played, {.ceiling_per_s = ceiling}).throughput; };
  EXPECT_EQ(judged(5000).standing, Standing::kValid);
  EXPECT_EQ(judged(1500).standing, Standing::kSuspect);
  EXPECT_EQ(judged(1100).standing, Standing::kInvalid);
  EXPECT_THAT(Reasons(judged(1100)), testing::Contains(Reason::kGeneratorBusy));
}

TEST(Judge, SaysWhenTheRateWasNotReached) {
  const Claims claims =
      Judge(Play({.response = [](double at) { return FromSeconds(0.002 + 0.02 * at); }}), {.rate = 1000});
  EXPECT_THAT(Reasons(claims.latency), testing::Contains(Reason::kRateMissed));
  EXPECT_EQ(claims.latency.standing, Standing::kInvalid);
}

TEST(Judge, DoesNotMissTheRateByTheLastRequestOfAShortRun) {
  EXPECT_EQ(Judge(Play({.seconds = 40, .rate = 1}), {.rate = 1}).latency.standing, Standing::kValid);
}

// Twice the capacity: every request waits longer than the one before.
TEST(Judge, SaysWhenResponseTimesOnlyGrow) {
  const Claims claims =
      Judge(Play({.response = [](double at) { return FromSeconds(0.001 + at); }}), {.rate = 1000});
  EXPECT_EQ(claims.latency.standing, Standing::kInvalid);
  EXPECT_THAT(Reasons(claims.latency), testing::Contains(Reason::kNoSteadyState));
}

TEST(Judge, LetsResponseTimesSwingAboutTheirMean) {
  const Claims claims = Judge(
      Play({.response =
                [](double at) { return FromSeconds(0.002 + 0.001 * std::sin(40 * std::numbers::pi * at)); }}),
      {});
  EXPECT_EQ(claims.latency.standing, Standing::kValid);
}

TEST(Judge, HoldsTheCountOfFailuresAgainstBothClaims) {
  const auto every = [](int n) {
    return [n](int i) { return i % n == 0 ? Outcome::kRefused : Outcome::kAnswered; };
  };
  EXPECT_EQ(Judge(Play({.outcome = every(100)}), {}).throughput.standing, Standing::kInvalid);
  EXPECT_EQ(Judge(Play({.outcome = every(5000)}), {}).throughput.standing, Standing::kValid);
}

TEST(Judge, WantsEnoughSamplesForThePercentile) {
  const auto standing = [](double seconds) {
    results::Verdict verdict;
    JudgePercentile(Play({.seconds = seconds}).tally.response, 0.99, verdict);
    return verdict.standing;
  };
  EXPECT_EQ(standing(0.5), Standing::kInvalid);
  EXPECT_EQ(standing(1.5), Standing::kValid);
  EXPECT_EQ(Judge(Play({.seconds = 0.02}), {}).throughput.standing, Standing::kSuspect);
  EXPECT_EQ(Judge(RunOutcome{}, {}).throughput.standing, Standing::kInvalid);
}

TEST(Judge, SuspectsARunThatWasStopped) {
  RunOutcome played = Play({});
  played.interrupted = true;
  EXPECT_EQ(Judge(played, {}).throughput.standing, Standing::kSuspect);
}

TEST(IsSpoiled, IsARunWhoseGeneratorAloneWasAtFault) {
  const RunOutcome late = Play({.slip = [](int i) { return i % 50 == 0 ? Duration(1500us) : Duration{}; }});
  EXPECT_TRUE(IsSpoiled(Judge(late, {.rate = 1000}).latency, late.tally));
  const RunOutcome steady = Play({});
  EXPECT_FALSE(IsSpoiled(Judge(steady, {.rate = 1000}).latency, steady.tally));
}

// Beyond its capacity a system is at fault, though the generator may be late as well.
TEST(IsSpoiled, IsNoneWhereTheSystemIsAtFaultToo) {
  const RunOutcome both = Play({.response = [](double at) { return FromSeconds(0.002 + 0.02 * at); },
                                .slip = [](int i) { return i % 50 == 0 ? Duration(1500us) : Duration{}; }});
  EXPECT_FALSE(IsSpoiled(Judge(both, {.rate = 1000}).latency, both.tally));
  const RunOutcome failing =
      Play({.outcome = [](int i) { return i % 100 == 0 ? Outcome::kRefused : Outcome::kAnswered; }});
  EXPECT_FALSE(IsSpoiled(Judge(failing, {.rate = 1000}).latency, failing.tally));
}

// Whoever stands still for the last half answers nothing that would show it.
TEST(Judge, SeesThatNothingCameAtTheEnd) {
  const RunOutcome played =
      Play({.outcome = [](int i) { return i < 5000 ? Outcome::kAnswered : Outcome::kTimedOut; }});
  const Claims claims = Judge(played, {});
  EXPECT_THAT(Reasons(claims.throughput), testing::Contains(Reason::kNoSteadyState));
}

TEST(Judge, SuspectsAMachineThatOthersUse) {
  const RunOutcome played = Play({});
  EXPECT_THAT(Reasons(Judge(played, {.steal_percent = 3}).latency), testing::ElementsAre(Reason::kSteal));
  EXPECT_THAT(Reasons(Judge(played, {.cpus = 2, .foreign_cpu = 0.5}).latency),
              testing::ElementsAre(Reason::kForeignCpu));
  EXPECT_THAT(Reasons(Judge(played, {.cpus = 2, .foreign_cpu = 0.05}).latency), testing::IsEmpty());
  EXPECT_EQ(Judge(played, {.throttled_s = 1}).latency.standing, Standing::kInvalid);
}

TEST(JudgeServerShare, SuspectsAServerThatOthersUse) {
  Claims claims;
  JudgeServerShare({.counted = 1000, .ours_at_most = 980}, claims);
  EXPECT_EQ(claims.latency.standing, Standing::kSuspect);
  EXPECT_EQ(claims.throughput.standing, Standing::kSuspect);
  EXPECT_THAT(Reasons(claims.throughput), testing::ElementsAre(Reason::kServerShared));
  EXPECT_EQ(
      claims.latency.causes[0].evidence,
      "20 or more of the 1000 requests that the server counted came from other clients (2 %), limit 1 %");
}

TEST(JudgeServerShare, RefusesTheClaimsWhereOthersAreMany) {
  Claims claims;
  JudgeServerShare({.counted = 2000, .ours_at_most = 1008}, claims);
  EXPECT_EQ(claims.latency.standing, Standing::kInvalid);
  EXPECT_EQ(claims.throughput.standing, Standing::kInvalid);
  EXPECT_TRUE(IsSpoiled(claims.latency, {})) << "it says nothing of the system under this load alone";
}

TEST(JudgeServerShare, LetsASingleProbePass) {
  for (const ServerShare& share :
       {ServerShare{.counted = 1000, .ours_at_most = 1000}, ServerShare{.counted = 1000, .ours_at_most = 990},
        ServerShare{.counted = 30, .ours_at_most = 29}, ServerShare{}}) {
    Claims claims;
    JudgeServerShare(share, claims);
    EXPECT_EQ(claims.latency.standing, Standing::kValid) << share.counted;
    EXPECT_FALSE(IsShared(share));
  }
}

TEST(MeanResponse, HasAnIntervalThatHoldsTheMean) {
  const auto interval = MeanResponse(
      Play({.response = [](double at) { return FromSeconds(0.002 + 0.0005 * std::sin(1000 * at)); }}));
  ASSERT_TRUE(interval.has_value());
  EXPECT_LT(interval->low, 0.002);
  EXPECT_GT(interval->high, 0.002);
  EXPECT_LT(interval->high - interval->low, 0.0002);
}

}  // namespace
}  // namespace weir::load
