#include "load/verdict/level_verdict.h"

#include <gmock/gmock.h>

namespace weir::load {
namespace {

using results::Cause;
using results::Reason;
using results::Standing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Instant kStart(100s);

void Answer(Tally& tally, Duration response, int count, Outcome outcome = Outcome::kAnswered) {
  for (int i = 0; i < count; ++i) {
    tally.Add({.planned = kStart,
               .sent = kStart,
               .first_byte = kStart + response,
               .done = kStart + response,
               .outcome = outcome},
              kStart);
  }
}

RunOutcome Repeat(double per_s, Duration response) {
  RunOutcome played;
  Answer(played.tally, response, 10);
  played.measured_s = 1;
  played.tally.answered_within = static_cast<int64_t>(per_s);
  return played;
}

TEST(MergeVerdict, TakesTheWorseStandingAndTheFirstEvidenceOfEachReason) {
  results::Verdict sum;
  sum.Add(Standing::kSuspect, {Reason::kSteal, "steal 2 %"});
  results::Verdict more;
  more.Add(Standing::kInvalid, {Reason::kSteal, "steal 9 %"});
  more.Add(Standing::kSuspect, {Reason::kErrors, "3 errors"});
  MergeVerdict(sum, more);
  EXPECT_EQ(sum.standing, Standing::kInvalid);
  EXPECT_THAT(sum.causes,
              ElementsAre(Cause{Reason::kSteal, "steal 2 %"}, Cause{Reason::kErrors, "3 errors"}));
  MergeVerdict(sum, {});
  EXPECT_EQ(sum.standing, Standing::kInvalid) << "a valid one does not mend it";
}

TEST(JudgeSpread, NamesTheClaimWhoseRepeatsLieApart) {
  Claims claims;
  JudgeSpread({Repeat(100, 2ms), Repeat(109, 2ms)}, 10, claims);
  EXPECT_EQ(claims.throughput.standing, Standing::kValid);
  JudgeSpread({Repeat(100, 2ms), Repeat(111, 2ms)}, 10, claims);
  EXPECT_EQ(claims.throughput.standing, Standing::kSuspect);
  EXPECT_THAT(claims.throughput.causes.at(0).evidence, HasSubstr("between 100 and 111"));
  EXPECT_EQ(claims.latency.standing, Standing::kValid);
  JudgeSpread({Repeat(100, 2ms), Repeat(100, 3ms)}, 10, claims);
  EXPECT_EQ(claims.latency.standing, Standing::kSuspect);
  EXPECT_EQ(claims.latency.causes.at(0).reason, Reason::kNoSteadyState);
}

TEST(JudgeSpread, SaysNothingOfOneRepeat) {
  Claims claims;
  JudgeSpread({Repeat(100, 2ms)}, 10, claims);
  EXPECT_EQ(claims.throughput.standing, Standing::kValid);
}

TEST(BelowThreshold, CountsUnansweredRequestsAsTooSlow) {
  Tally tally;
  Answer(tally, 2ms, 1000);
  EXPECT_EQ(BelowThreshold(tally, 0.99, 5), stats::Answer::kYes);
  EXPECT_EQ(BelowThreshold(tally, 0.99, 1), stats::Answer::kNo);
  Answer(tally, 2ms, 50, Outcome::kTimedOut);
  EXPECT_EQ(BelowThreshold(tally, 0.99, 5), stats::Answer::kNo);
}

TEST(BelowThreshold, IsUndecidedOfFewRequestsAndAbsentWithoutAThreshold) {
  Tally tally;
  Answer(tally, 2ms, 10);
  EXPECT_EQ(BelowThreshold(tally, 0.99, 5), stats::Answer::kUndecided);
  EXPECT_FALSE(BelowThreshold(tally, 0.99, 0).has_value());
}

monitor::Range Steady(double value) { return {.mean = value, .max = value, .min = value}; }

TEST(FindEnvironment, ForeignCpuIsTheMachinesLessThisProcessAndTheServer) {
  monitor::Resources own, server;
  own.client_cpu = Steady(4);
  own.app_cpu = Steady(1);
  own.recogniser_cpu = Steady(0.5);
  own.observer_cpu = 0.1;
  own.steal_percent = 0.3;
  server.app_cpu = Steady(2);
  const Scenario scenario = Rate{.per_second = 200};
  const std::optional<monitor::Resources> ours = own, theirs = server, none;
  const auto watched = FindEnvironment({.scenario = scenario,
                                        .ceiling_per_s = 9000,
                                        .cpus = 8,
                                        .resources = ours,
                                        .server_resources = theirs});
  EXPECT_NEAR(watched.foreign_cpu.value(), 0.4, 1e-12);
  EXPECT_EQ(watched.rate, 200);
  EXPECT_EQ(watched.cpus, 8);
  EXPECT_EQ(watched.ceiling_per_s, 9000);
  EXPECT_EQ(watched.steal_percent, 0.3);
  const auto unwatched = FindEnvironment({.scenario = scenario, .resources = ours, .server_resources = none});
  EXPECT_FALSE(unwatched.foreign_cpu.has_value()) << "the server may be here";
  const auto local =
      FindEnvironment({.scenario = scenario, .is_local = true, .resources = ours, .server_resources = none});
  EXPECT_NEAR(local.foreign_cpu.value(), 2.4, 1e-12);
  EXPECT_FALSE(
      FindEnvironment({.scenario = scenario, .resources = none, .server_resources = none}).steal_percent);
}

}  // namespace
}  // namespace weir::load
