#include "load/session/run_levels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

namespace weir::load {
namespace {

using results::Reason;
using results::Standing;
using stats::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Level AtRate(double rate) { return {.scenario = Rate{.per_second = rate}, .name = "rate"}; }
Level InFlight(int in_flight) { return {.scenario = Concurrency{in_flight}, .name = "concurrency"}; }

double RateOf(const Level& level) { return std::get<Rate>(level.scenario).per_second; }

// Plays what a test says, and writes down what it was asked for.
class LevelsTest : public ::testing::Test {
 protected:
  // A level as the system under load would have it.
  using System = std::function<LevelResult(const Level&)>;

  RunLevelsHooks Hooks(const System& system) {
    return {.play = [this, system](const Level& level, const LevelLength& length, int number,
                                   Seed seed) -> Result<LevelResult> {
              numbers_.push_back(number);
              lengths_.push_back(Seconds(length.length));
              seeds_.push_back(seed);
              LevelResult result = system(level);
              result.level = level;
              return result;
            },
            .played = [this](const LevelResult&) { ++played_; },
            .note = [this](const std::string& line) { notes_.push_back(line); }};
  }

  LoadOptions options_;
  std::stop_source stop_;
  LevelsOutcome outcome_;
  std::vector<int> numbers_;
  std::vector<double> lengths_;
  std::vector<Seed> seeds_;
  std::vector<std::string> notes_;
  int played_ = 0;
};

LevelResult Saying(Answer answer) {
  LevelResult result;
  result.below_threshold = answer;
  return result;
}

TEST_F(LevelsTest, PlaysEveryLevelInOrder) {
  ASSERT_TRUE(PlayLevels(options_, {InFlight(1), InFlight(2), InFlight(4)}, {.length = 3s}, std::nullopt,
                         Hooks([](const Level&) { return LevelResult{}; }), stop_.get_token(), outcome_));
  EXPECT_THAT(numbers_, ElementsAre(0, 1, 2));
  EXPECT_THAT(lengths_, ElementsAre(3, 3, 3));
  EXPECT_EQ(played_, 3);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(LevelsTest, LeavesOutTheLevelsAfterTheFirstThatIsNotBelowTheThreshold) {
  ASSERT_TRUE(PlayLevels(options_, {InFlight(1), InFlight(2), InFlight(4), InFlight(8)}, {}, std::nullopt,
                         Hooks([](const Level& level) {
                           const bool fast = std::get<Concurrency>(level.scenario).in_flight < 2;
                           return Saying(fast ? Answer::kYes : Answer::kNo);
                         }),
                         stop_.get_token(), outcome_));
  EXPECT_EQ(outcome_.levels.size(), 2U);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("2 levels left out")));
}

TEST_F(LevelsTest, StopsBetweenLevelsAndKeepsThoseThatWerePlayed) {
  ASSERT_TRUE(PlayLevels(options_, {InFlight(1), InFlight(2)}, {}, std::nullopt, Hooks([this](const Level&) {
                           stop_.request_stop();
                           return LevelResult{};
                         }),
                         stop_.get_token(), outcome_));
  EXPECT_EQ(outcome_.levels.size(), 1U);
}

TEST_F(LevelsTest, KeepsTheLevelsBeforeAnError) {
  RunLevelsHooks hooks = Hooks([](const Level&) { return LevelResult{}; });
  const auto inner = hooks.play;
  hooks.play = [&](const Level& level, const LevelLength& length, int number,
                   Seed seed) -> Result<LevelResult> {
    if (number == 1) return Fail(ErrorCode::kIo, "the disk is full");
    return inner(level, length, number, seed);
  };
  const Status status =
      PlayLevels(options_, {InFlight(1), InFlight(2)}, {}, std::nullopt, hooks, stop_.get_token(), outcome_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the disk is full");
  EXPECT_EQ(outcome_.levels.size(), 1U);
}

TEST_F(LevelsTest, ServerThatOthersUsedGivesNoValidMlperfResult) {
  options_.scenario = MlperfScenario::kSingleStream;
  const auto mlperf = FindMlperf(options_);
  ASSERT_TRUE(mlperf && *mlperf);
  ASSERT_TRUE(PlayLevels(options_, {(*mlperf)->level}, {}, *mlperf, Hooks([](const Level&) {
                           LevelResult result;
                           result.repeats.emplace_back();
                           result.server_share = ServerShare{.counted = 1000, .ours_at_most = 500};
                           return result;
                         }),
                         stop_.get_token(), outcome_));
  ASSERT_TRUE(outcome_.levels[0].mlperf.has_value());
  EXPECT_FALSE(outcome_.levels[0].mlperf->valid);
  EXPECT_THAT(outcome_.levels[0].mlperf->shortfalls.back(), HasSubstr("other clients"));
}

// Holds the threshold up to a rate.
LevelResult UpTo(double peak, const Level& level) {
  return Saying(RateOf(level) <= peak ? Answer::kYes : Answer::kNo);
}

TEST_F(LevelsTest, FindsThePeakAndConfirmsItWithFreshSeeds) {
  options_.distribution = infer::Distribution::kPoisson;
  ASSERT_TRUE(FindPeak(options_, AtRate(100), {.length = 10s},
                       Hooks([](const Level& level) { return UpTo(437, level); }), stop_.get_token(),
                       outcome_));
  ASSERT_TRUE(outcome_.peak && outcome_.peak->rate);
  EXPECT_TRUE(outcome_.peak->confirmed);
  EXPECT_LE(*outcome_.peak->rate, 437);
  EXPECT_GT(*outcome_.peak->rate * 1.02, 437);
  EXPECT_EQ(outcome_.levels.back().level.name, fmt::format("poisson {:.6g}/s, again", *outcome_.peak->rate));
  EXPECT_EQ(outcome_.levels.size(), static_cast<size_t>(played_));
  EXPECT_NE(seeds_[0].Stream("x").MakeRandom().Uniform(), seeds_[1].Stream("x").MakeRandom().Uniform());
}

TEST_F(LevelsTest, RunsOfASearchAreLongEnoughToDecide) {
  options_.percentile = 99;
  ASSERT_TRUE(FindPeak(options_, AtRate(10), {.length = 1s},
                       Hooks([](const Level& level) { return UpTo(10, level); }), stop_.get_token(),
                       outcome_));
  const double requests = 3 * static_cast<double>(stats::QueriesNeeded(0.99, 1));
  EXPECT_GE(lengths_[0] * 10, requests);
}

TEST_F(LevelsTest, SpoiledRunIsPlayedAgainWithAnotherSeed) {
  int runs = 0;
  ASSERT_TRUE(FindPeak(options_, AtRate(100), {.length = 1s}, Hooks([&](const Level& level) {
                         LevelResult result = UpTo(150, level);
                         if (++runs == 1)
                           result.claims.latency.Add(Standing::kInvalid, {Reason::kGeneratorLate, "late"});
                         return result;
                       }),
                       stop_.get_token(), outcome_));
  EXPECT_FALSE(outcome_.peak_spoiled);
  EXPECT_EQ(RateOf(outcome_.levels[0].level), RateOf(outcome_.levels[1].level));
  EXPECT_THAT(notes_[1], HasSubstr("says nothing of the system"));
}

TEST_F(LevelsTest, SearchEndsWhereEveryRunIsSpoiled) {
  ASSERT_TRUE(FindPeak(options_, AtRate(100), {.length = 1s}, Hooks([&](const Level&) {
                         LevelResult result = Saying(Answer::kYes);
                         result.claims.latency.Add(Standing::kInvalid, {Reason::kSteal, "stolen"});
                         return result;
                       }),
                       stop_.get_token(), outcome_));
  EXPECT_TRUE(outcome_.peak_spoiled);
  ASSERT_TRUE(outcome_.peak.has_value());
  EXPECT_FALSE(outcome_.peak->rate.has_value());
  EXPECT_EQ(outcome_.levels.size(), 3U);
  EXPECT_THAT(notes_.back(), HasSubstr("3 runs"));
}

TEST_F(LevelsTest, InvalidLatencyOfTheSystemCountsAsTooSlow) {
  ASSERT_TRUE(FindPeak(options_, AtRate(100), {.length = 1s}, Hooks([&](const Level& level) {
                         LevelResult result = Saying(Answer::kYes);
                         if (RateOf(level) > 150)
                           result.claims.latency.Add(Standing::kInvalid, {Reason::kRateMissed, "missed"});
                         return result;
                       }),
                       stop_.get_token(), outcome_));
  ASSERT_TRUE(outcome_.peak && outcome_.peak->rate);
  EXPECT_LE(*outcome_.peak->rate, 150);
}

TEST_F(LevelsTest, StoppedSearchHasNoPeak) {
  ASSERT_TRUE(FindPeak(options_, AtRate(100), {.length = 1s}, Hooks([&](const Level&) {
                         stop_.request_stop();
                         return Saying(Answer::kYes);
                       }),
                       stop_.get_token(), outcome_));
  EXPECT_FALSE(outcome_.peak.has_value());
  EXPECT_TRUE(outcome_.levels.empty());
}

LevelsOutcome Played(Standing throughput, Standing latency, const Level& level,
                     std::optional<Answer> below = {}) {
  LevelsOutcome outcome;
  LevelResult& result = outcome.levels.emplace_back();
  result.level = level;
  result.claims.throughput.standing = throughput;
  result.claims.latency.standing = latency;
  result.below_threshold = below;
  return outcome;
}

TEST(MeetsClaim, JudgesTheThroughputOfAConcurrencyAndTheLatencyOfARate) {
  EXPECT_TRUE(MeetsClaim({}, Played(Standing::kSuspect, Standing::kInvalid, InFlight(4))));
  EXPECT_FALSE(MeetsClaim({}, Played(Standing::kInvalid, Standing::kValid, InFlight(4))));
  EXPECT_TRUE(MeetsClaim({}, Played(Standing::kInvalid, Standing::kValid, AtRate(4))));
  EXPECT_FALSE(MeetsClaim({}, Played(Standing::kValid, Standing::kInvalid, AtRate(4))));
  EXPECT_FALSE(MeetsClaim({}, {})) << "nothing was played";
}

TEST(MeetsClaim, ThresholdMustBeMetByALevel) {
  const LoadOptions options{.latency_threshold_ms = 5};
  const auto level = [](Answer answer, Standing latency) {
    return Played(Standing::kValid, latency, InFlight(1), answer);
  };
  EXPECT_TRUE(MeetsClaim(options, level(Answer::kYes, Standing::kValid)));
  EXPECT_FALSE(MeetsClaim(options, level(Answer::kNo, Standing::kValid)));
  EXPECT_FALSE(MeetsClaim(options, level(Answer::kUndecided, Standing::kValid)));
  EXPECT_FALSE(MeetsClaim(options, level(Answer::kYes, Standing::kInvalid)));
}

TEST(MeetsClaim, SearchMustConfirmItsRate) {
  LevelsOutcome outcome = Played(Standing::kInvalid, Standing::kInvalid, AtRate(1));
  outcome.peak = PeakSearch::Outcome{.rate = 100, .confirmed = true};
  EXPECT_TRUE(MeetsClaim({}, outcome));
  outcome.peak->confirmed = false;
  EXPECT_FALSE(MeetsClaim({}, outcome));
  outcome.peak = PeakSearch::Outcome{.rate = {}, .confirmed = true};
  EXPECT_FALSE(MeetsClaim({}, outcome));
}

}  // namespace
}  // namespace weir::load
