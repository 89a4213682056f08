#include "study/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "study/measured.h"

namespace weir::study {
namespace {

using results::TrialResult, results::Standing;
using testing::HasSubstr;

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "study_run_test." + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeFolders(folder_));
    auto study = ParseStudy("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 2\n");
    ASSERT_TRUE(study);
    header_ = {.study = study->ToJson(), .provenance = {{"host", "here"}, {"build_id", "1234"}}};
    auto design = MakeDesign(*study);
    ASSERT_TRUE(design);
    design_ = std::move(*design);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/journal.jsonl"; }

  // Opens, plays with `play`, closes.
  Result<Ending> Play(const TrialFn& play, Begin begin = Begin::kNew, std::stop_token stop = {},
                      ProgressFn progress = {}) {
    Opened opened = TRY(OpenStudy(path(), header_, begin));
    const ManualClock clock;
    return PlayStudy({.design = design_,
                      .play = play,
                      .progress = std::move(progress),
                      .stop = std::move(stop),
                      .clock = clock},
                     opened.journal, opened.so_far.played);
  }
  StudyJournal Read() {
    const auto contents = record::ReadJournal(path());
    CHECK(contents.has_value());
    auto journal = ReadEntries(*contents);
    CHECK(journal.has_value());
    return std::move(*journal);
  }
  // Every trial of the design is there once, in its order.
  void ExpectWhole() {
    const StudyJournal journal = Read();
    ASSERT_EQ(journal.played.size(), design_.trials.size());
    for (size_t i = 0; i < design_.trials.size(); ++i)
      EXPECT_EQ(journal.played[i].trial.id, design_.trials[i].id);
  }

  static Result<TrialResult> Fine(const Trial&) {
    return TrialResult{.metrics = {{"throughput_images_per_s", 100.0}}};
  }

  std::string folder_;
  Header header_;
  Design design_;
};

TEST_F(RunTest, PlaysTheDesignInItsOrder) {
  std::vector<std::string> order;
  const auto ending = Play([&order](const Trial& trial) {
    order.push_back(trial.id);
    return Fine(trial);
  });
  ASSERT_TRUE(ending);
  EXPECT_EQ(*ending, Ending::kDone);
  ASSERT_EQ(order.size(), 10u);
  ExpectWhole();
  EXPECT_EQ(Read().played[3].record.factors, design_.configurations[design_.trials[3].configuration].factors);
  EXPECT_EQ(Read().played[3].trial.seed, design_.trials[3].seed);
}

TEST_F(RunTest, BeginsAnewInTheJournalOfACommandThatPlayedNothing) {
  ASSERT_TRUE(OpenStudy(path(), header_, Begin::kNew));
  header_.study["corrected"] = true;
  ASSERT_TRUE(OpenStudy(path(), header_, Begin::kNew));
  ASSERT_TRUE(Play([](const Trial& trial) { return Fine(trial); }));
  EXPECT_EQ(Read().header.study, header_.study);
  ExpectWhole();
  EXPECT_FALSE(OpenStudy(path(), header_, Begin::kNew)) << "now there are trials";
}

TEST_F(RunTest, TriesAFailedTrialOnceMoreAndKeepsBothTries) {
  const std::string bad = design_.trials[2].id, hopeless = design_.trials[4].id;
  std::map<std::string, int> calls;
  std::vector<Progress> seen;
  ASSERT_TRUE(Play(
      [&](const Trial& trial) -> Result<TrialResult> {
        const int call = ++calls[trial.id];
        if (trial.id == hopeless || (trial.id == bad && call == 1))
          return Fail(ErrorCode::kIo, "the server fell");
        return Fine(trial);
      },
      Begin::kNew, {}, [&seen](const Progress& progress, const PlayedTrials&) { seen.push_back(progress); }));
  EXPECT_EQ(calls[bad], 2);
  EXPECT_EQ(calls[hopeless], 2);
  const StudyJournal journal = Read();
  ASSERT_EQ(journal.played.size(), 12u);
  EXPECT_EQ(journal.played[2].record.verdict.standing, Standing::kFailed);
  EXPECT_EQ(journal.played[2].record.verdict.message, "the server fell");
  EXPECT_EQ(journal.played[3].trial.id, bad);
  EXPECT_EQ(journal.played[3].attempt, 2);
  EXPECT_EQ(journal.played[3].record.verdict.standing, Standing::kValid);
  EXPECT_EQ(seen.back().done, 10);
  EXPECT_EQ(seen.back().total, 10);
  EXPECT_EQ(seen.back().failed, 1);
}

TEST_F(RunTest, TakesAVerdictOfFailureForOne) {
  int calls = 0;
  ASSERT_TRUE(Play([&calls](const Trial& trial) {
    TrialResult record = *Fine(trial);
    if (++calls == 1) record.verdict = {.standing = Standing::kFailed, .message = "wrong answers"};
    return Result<TrialResult>(record);
  }));
  EXPECT_EQ(calls, 11);
}

Result<TrialResult> Suspect(const Trial&) {
  TrialResult record{.metrics = {{"throughput_images_per_s", 90.0}}};
  record.verdict.Add(Standing::kSuspect, {results::Reason::kForeignCpu, "others"});
  return record;
}

TEST_F(RunTest, PlaysSuspectTrialsOnceMoreAtItsEnd) {
  std::map<std::string, int> tries;
  std::vector<std::string> order;
  const std::set<std::string> disturbed{design_.trials[1].id, design_.trials[3].id};
  ASSERT_TRUE(Play([&](const Trial& trial) {
    order.push_back(trial.id);
    return disturbed.contains(trial.id) && ++tries[trial.id] == 1 ? Suspect(trial) : Fine(trial);
  }));
  ASSERT_EQ(order.size(), 12u);
  EXPECT_EQ(order[10], design_.trials[1].id);
  EXPECT_EQ(order[11], design_.trials[3].id);
  const StudyJournal journal = Read();
  for (const PlayedTrials* one : LastTries(journal.played))
    EXPECT_EQ(one->record.verdict.standing, Standing::kValid);
  // The journal is complete: a resumed study plays nothing.
  ASSERT_TRUE(
      Play([](const Trial&) -> Result<TrialResult> { return Fail(ErrorCode::kInternal, "played again"); },
           Begin::kResume));
  EXPECT_EQ(Read().played.size(), 12u);
}

TEST_F(RunTest, StopsReplayingOnAMachineThatStaysDisturbed) {
  int played = 0;
  ASSERT_TRUE(Play([&](const Trial& trial) {
    ++played;
    return Suspect(trial);
  }));
  EXPECT_EQ(played, 10 + kMostVainReplays);
}

TEST_F(RunTest, KeepsTheFirstTryWhereTheReplayIsWorse) {
  std::map<std::string, int> tries;
  ASSERT_TRUE(Play([&](const Trial& trial) -> Result<TrialResult> {
    if (trial.id != design_.trials[2].id) return Fine(trial);
    if (++tries[trial.id] == 1) return Suspect(trial);
    return Fail(ErrorCode::kIo, "fell");
  }));
  const StudyJournal journal = Read();
  EXPECT_EQ(journal.played.size(), 11u);
  for (const PlayedTrials* one : LastTries(journal.played)) {
    if (one->trial.id == design_.trials[2].id) {
      EXPECT_EQ(one->record.verdict.standing, Standing::kSuspect);
    }
  }
}

TEST_F(RunTest, SkipsWhatThisMachineCannotAndAsksOnce) {
  int asked = 0;
  ASSERT_TRUE(Play([&](const Trial& trial) -> Result<TrialResult> {
    if (design_.configurations[trial.configuration].factors["batch"] == 8) {
      ++asked;
      return Fail(ErrorCode::kUnsupported, "no podman here; apt install podman");
    }
    return Fine(trial);
  }));
  EXPECT_EQ(asked, 1);
  int skipped = 0;
  for (const PlayedTrials& played : Read().played) {
    if (played.record.verdict.standing != Standing::kSkipped) continue;
    EXPECT_EQ(played.record.verdict.message, "no podman here; apt install podman");
    ++skipped;
  }
  EXPECT_EQ(skipped, 2);
  ExpectWhole();
}

TEST_F(RunTest, TriesAgainAfterAResumeWhatWasSkipped) {
  const auto unable = [&](const std::string& why) {
    return [&, why](const Trial& trial) -> Result<TrialResult> {
      if (design_.configurations[trial.configuration].factors["batch"] == 8)
        return Fail(ErrorCode::kUnsupported, why);
      return Fine(trial);
    };
  };
  ASSERT_TRUE(Play(unable("no podman here")));
  const std::string text = *ReadTextFile(path());
  ASSERT_TRUE(Play(unable("no podman here"), Begin::kResume));
  EXPECT_EQ(*ReadTextFile(path()), text) << "nothing new is known";
  ASSERT_TRUE(Play(unable("no image here"), Begin::kResume));
  int played_again = 0;
  ASSERT_TRUE(Play(
      [&](const Trial& trial) {
        ++played_again;
        return Fine(trial);
      },
      Begin::kResume));
  EXPECT_EQ(played_again, 2) << "what was skipped, and nothing else";
  std::map<std::string, std::vector<Standing>> standings;
  for (const PlayedTrials& played : Read().played)
    standings[played.trial.id].push_back(played.record.verdict.standing);
  int mended = 0;
  for (const auto& [id, each] : standings) {
    EXPECT_EQ(each.back(), Standing::kValid);
    mended += each == std::vector{Standing::kSkipped, Standing::kSkipped, Standing::kValid};
  }
  EXPECT_EQ(mended, 2);
}

TEST_F(RunTest, KeepsAllWhenItIsStoppedAndGoesOnFromThere) {
  std::stop_source source;
  int calls = 0;
  const auto stopped = Play(
      [&](const Trial& trial) {
        if (++calls == 4) source.request_stop();
        return Fine(trial);
      },
      Begin::kNew, source.get_token());
  ASSERT_TRUE(stopped);
  EXPECT_EQ(*stopped, Ending::kStopped);
  EXPECT_EQ(Read().played.size(), 4u);  // that under way ended, and was kept
  ASSERT_TRUE(Play(Fine, Begin::kResume));
  ExpectWhole();
}

TEST_F(RunTest, TriesOnceMoreAfterAResumeWhatFailedOnceBefore) {
  std::stop_source source;
  ASSERT_TRUE(Play(
      [&](const Trial&) -> Result<TrialResult> {
        source.request_stop();
        return Fail(ErrorCode::kIo, "fell");
      },
      Begin::kNew, source.get_token()));
  ASSERT_EQ(Read().played.size(), 1u);
  ASSERT_TRUE(Play(Fine, Begin::kResume));
  const StudyJournal journal = Read();
  ASSERT_EQ(journal.played.size(), 11u);
  EXPECT_EQ(journal.played[1].trial.id, design_.trials[0].id);
  EXPECT_EQ(journal.played[1].attempt, 2);
}

TEST_F(RunTest, LosesAndDoublesNoTrialWhenKilled) {
  for (size_t kill_at = 0; kill_at < design_.trials.size(); ++kill_at) {
    std::filesystem::remove(path());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      size_t calls = 0;
      (void)Play([&](const Trial& trial) {
        if (calls++ == kill_at) ::kill(::getpid(), SIGKILL);
        return Fine(trial);
      });
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(Read().played.size(), kill_at);
    ASSERT_TRUE(Play(Fine, Begin::kResume));
    ExpectWhole();
  }
}

// As a kill in the midst of the write of a line leaves it.
TEST_F(RunTest, GoesOnFromAJournalThatIsCutAnywhere) {
  ASSERT_TRUE(Play(Fine));
  const std::string text = *ReadTextFile(path());
  for (size_t cut = 0; cut < text.size(); cut += 97) {
    ASSERT_TRUE(WriteFileWhole(path(), text.substr(0, cut)));
    ASSERT_TRUE(Play(Fine, Begin::kResume)) << "cut at byte " << cut;
    ExpectWhole();
  }
}

TEST_F(RunTest, RefusesAFolderThatHasAStudyUnlessAskedToResume) {
  ASSERT_TRUE(Play(Fine));
  const auto again = Play(Fine);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("--resume"));
}

TEST_F(RunTest, RefusesToResumeUnderOtherConditionsAndShowsThem) {
  ASSERT_TRUE(Play(Fine));
  header_.provenance["build_id"] = "5678";
  header_.study["repeats"] = 3;
  const auto resumed = Play(Fine, Begin::kResume);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(resumed.error().message, HasSubstr("study file: repeats: 2 before, 3 now"));
  EXPECT_THAT(resumed.error().message, HasSubstr("host and build: build_id: 1234 before, 5678 now"));
}

TEST_F(RunTest, NamesTheLineOfAJournalThatIsNone) {
  ASSERT_TRUE(WriteFileWhole(path(), "{\"entry\":\"trial\"}\n"));
  const auto resumed = Play(Fine, Begin::kResume);
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message, HasSubstr("line 1: not the first line of a study"));
}

TEST_F(RunTest, TellsTheTimeLeftFromThePaceSoFar) {
  std::vector<Progress> seen;
  ManualClock clock;
  Opened opened = *OpenStudy(path(), header_, Begin::kNew);
  const auto play = [&clock](const Trial& trial) {
    clock.Advance(3s);
    return Fine(trial);
  };
  ASSERT_TRUE(PlayStudy({.design = design_,
                         .play = play,
                         .progress = [&](const Progress& p, const PlayedTrials&) { seen.push_back(p); },
                         .clock = clock},
                        opened.journal, {}));
  EXPECT_EQ(seen[0].left_s, 27);
  EXPECT_EQ(seen[9].left_s, 0);
  EXPECT_EQ(Read().played[0].took_s, 3);
}

}  // namespace
}  // namespace weir::study
