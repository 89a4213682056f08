#include "advise/search_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "advise/run_search.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace weir::advise {
namespace {

using results::Standing;
using testing::HasSubstr;

const study::Header kHeader{.study = {{"study", "s"}}, .provenance = Json::object()};
const Json kFactors = {{"batch", 1}};

// Gives the standings in turn, and counts the tries.
struct Player {
  std::vector<Standing> standings;
  size_t tries = 0;

  study::TrialFn Fn() {
    return [this](const study::Trial&) -> Result<results::TrialResult> {
      const Standing standing = tries < standings.size() ? standings[tries] : Standing::kValid;
      ++tries;
      if (standing == Standing::kFailed) return Fail(ErrorCode::kIo, "broke");
      if (standing == Standing::kSkipped) return Fail(ErrorCode::kUnsupported, "no podman");
      results::TrialResult result;
      result.verdict.standing = standing;
      result.metrics = {{"throughput_images_per_s", 100.0 + double(tries)}};
      return result;
    };
  }
};

class SearchTrialsTest : public testing::Test {
 protected:
  SearchTrialsTest() : folder_(*TemporaryFolder::Make("weir-search")) {}
  std::string path() const { return folder_.path() + "/" + kSearchJournal; }
  Result<SearchTrials> Open(study::Begin begin) { return SearchTrials::Open(path(), kHeader, begin, clock_); }

  ManualClock clock_;
  TemporaryFolder folder_;
};

Standing StandingOf(const Result<study::PlayedTrials>& played) { return played->record.verdict.standing; }

TEST_F(SearchTrialsTest, PlaysNoTrialOfTheJournalAgain) {
  const study::Trial trial{.id = "explore-0-0"};
  Player player;
  {
    auto trials = Open(study::Begin::kNew);
    ASSERT_TRUE(trials) << trials.error().message;
    ASSERT_TRUE(trials->Play(trial, {{"batch", 1}}, player.Fn(), false));
  }
  auto trials = Open(study::Begin::kResume);
  ASSERT_TRUE(trials) << trials.error().message;
  EXPECT_EQ(trials->known(), 1);
  const auto again = trials->Play(trial, {{"batch", 1}}, player.Fn(), false);
  EXPECT_EQ(player.tries, 1u);
  EXPECT_EQ(again->record.metrics["throughput_images_per_s"], 101.0);
  ASSERT_TRUE(trials->Play(trial, {{"batch", 2}}, player.Fn(), false));  // the id of another accelerator
  EXPECT_EQ(player.tries, 2u);
}

TEST_F(SearchTrialsTest, RefusesAJournalThatItWasNotToldToContinueOrOfAnotherStudy) {
  {
    auto trials = Open(study::Begin::kNew);
    ASSERT_TRUE(trials) << trials.error().message;
    Player player;
    ASSERT_TRUE(trials->Play(study::Trial{}, {{"batch", 1}}, player.Fn(), false));
  }
  const auto again = Open(study::Begin::kNew);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("--resume"));
  const study::Header other{.study = {{"study", "t"}}, .provenance = Json::object()};
  const auto mixed = SearchTrials::Open(path(), other, study::Begin::kResume, clock_);
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message, HasSubstr("study: s before, t now"));
}

TEST_F(SearchTrialsTest, TriesAFailedTrialOnceMoreAndASkippedOneAgainAfterAResume) {
  Player player{.standings = {Standing::kFailed, Standing::kValid, Standing::kFailed, Standing::kFailed,
                              Standing::kSkipped}};
  {
    auto trials = Open(study::Begin::kNew);
    ASSERT_TRUE(trials);
    EXPECT_EQ(StandingOf(trials->Play({.id = "a"}, kFactors, player.Fn(), false)), Standing::kValid);
    EXPECT_EQ(StandingOf(trials->Play({.id = "b"}, kFactors, player.Fn(), false)), Standing::kFailed);
    EXPECT_EQ(StandingOf(trials->Play({.id = "c"}, kFactors, player.Fn(), false)), Standing::kSkipped);
    EXPECT_EQ(player.tries, 5u);
  }
  auto trials = Open(study::Begin::kResume);
  ASSERT_TRUE(trials);
  EXPECT_EQ(StandingOf(trials->Play({.id = "a"}, kFactors, player.Fn(), false)), Standing::kValid);
  EXPECT_EQ(StandingOf(trials->Play({.id = "b"}, kFactors, player.Fn(), false)), Standing::kFailed);
  EXPECT_EQ(player.tries, 5u);
  EXPECT_EQ(StandingOf(trials->Play({.id = "c"}, kFactors, player.Fn(), false)), Standing::kValid);
  EXPECT_EQ(player.tries, 6u);
}

TEST_F(SearchTrialsTest, TriesASuspectTrialOnceMoreWhereItJudgesUntilThatIsInVain) {
  SearchTrials trials(clock_);
  Player helped{.standings = {Standing::kSuspect, Standing::kValid}};
  EXPECT_EQ(StandingOf(trials.Play({.id = "a"}, kFactors, helped.Fn(), true)), Standing::kValid);
  Player chosen{.standings = {Standing::kSuspect}};
  EXPECT_EQ(StandingOf(trials.Play({.id = "b"}, kFactors, chosen.Fn(), false)), Standing::kSuspect);
  EXPECT_EQ(chosen.tries, 1u);
  Player vain{.standings = std::vector<Standing>(20, Standing::kSuspect)};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(StandingOf(trials.Play({.id = std::to_string(i)}, kFactors, vain.Fn(), true)),
              Standing::kSuspect);
  }
  EXPECT_EQ(vain.tries, 5u + study::kMostVainReplays);
}

// A search that is stopped after any number of trials and goes on plays each trial once, and its answer is
// that of a search that was never stopped.
TEST_F(SearchTrialsTest, ASearchThatIsStoppedAnywhereEndsAsOneThatIsNot) {
  study::Design design;
  for (int batch = 0; batch < 12; ++batch)
    design.configurations.push_back({.factors = {{"batch", batch}}, .label = std::to_string(batch)});
  int played = 0;
  const study::TrialFn play = [&](const study::Trial& trial) -> Result<results::TrialResult> {
    ++played;
    results::TrialResult result;
    const double batch = double(trial.configuration), wobble = double((trial.block * 7 + trial.seed) % 5);
    result.metrics = {{"throughput_images_per_s", 100 - (batch - 4) * (batch - 4) + 0.1 * wobble}};
    return result;
  };
  const Goal goal;
  const auto run = [&](SearchTrials& trials, int most) {
    std::stop_source stop;
    const int before = played;
    return RunSearch(
        {.design = design,
         .goal = goal,
         .play = play,
         .trials = trials,
         .progress = [&](const SearchProgress&) { return played - before >= most && stop.request_stop(); },
         .stop = stop.get_token()});
  };
  SearchTrials unstopped(clock_);
  const auto whole = run(unstopped, 1'000'000);
  ASSERT_TRUE(whole && whole->answer);
  const int needed = std::exchange(played, 0);
  for (int part = 0; part < needed; ++part) {
    auto trials = Open(part == 0 ? study::Begin::kNew : study::Begin::kResume);
    ASSERT_TRUE(trials) << trials.error().message;
    EXPECT_EQ(trials->known(), part);
    const auto some = run(*trials, 1);
    ASSERT_TRUE(some);
    EXPECT_EQ(played, part + 1);
    if (!some->answer) continue;
    EXPECT_EQ(some->answer->winner, whole->answer->winner);
    EXPECT_EQ(some->answer->difference_low, whole->answer->difference_low);
  }
  auto trials = Open(study::Begin::kResume);
  ASSERT_TRUE(trials);
  const auto end = run(*trials, 1);
  ASSERT_TRUE(end && end->answer);
  EXPECT_EQ(played, needed);
  EXPECT_EQ(end->answer->winner, whole->answer->winner);
}

}  // namespace
}  // namespace weir::advise
