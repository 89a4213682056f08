#include "trial/study_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace weir::trial {
namespace {

using testing::ElementsAre, testing::HasSubstr;

constexpr const char* kStudy = "study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 2\n";

class StudySessionTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = testing::TempDir() + "study_session_test." + std::to_string(::getpid()) + ".yaml";
    ASSERT_TRUE(WriteFileWhole(file_, kStudy));
  }
  void TearDown() override { ::unlink(file_.c_str()); }

  std::string file_;
};

TEST_F(StudySessionTest, APlanHasTheDesignOfItsFile) {
  const auto plan = PlanStudy({.file = file_});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->design.configurations.size(), 2u);
  EXPECT_EQ(plan->text, kStudy);
}

TEST_F(StudySessionTest, TheWaterfallIsWrittenIntoTheStudyThatIsKept) {
  const auto plan = PlanStudy({.file = file_, .waterfall = true});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->text, HasSubstr("waterfall: true"));
  EXPECT_FALSE(plan->design.waterfall.empty());
}

TEST_F(StudySessionTest, RefusesToResumeInAFolderThatIsAbsent) {
  const auto plan = PlanStudy({.file = file_, .folder = file_ + ".absent", .resume = true});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(plan.error().message, HasSubstr("leave out --resume"));
}

TEST_F(StudySessionTest, RefusesAWaitOfNoTime) {
  const auto plan = PlanStudy({.file = file_, .wait_quiet = "0s"});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("--wait-quiet"));
}

TEST_F(StudySessionTest, APilotNotesEachReasonOnceAndTimesTheRest) {
  const auto plan = PlanStudy({.file = file_});
  ASSERT_TRUE(plan);
  ManualClock clock;
  std::vector<std::string> noted;
  const auto note = [&](const std::string& text) { noted.push_back(text); };
  const Pilot good = PlayPilot(
      plan->design, {},
      [&](const study::Trial&) -> Result<results::TrialResult> {
        clock.Advance(3s);
        return results::TrialResult{};
      },
      clock, {}, note);
  EXPECT_EQ(good.seconds[plan->design.reference], 3.0);
  EXPECT_FALSE(good.any_failed);
  const Pilot bad = PlayPilot(
      plan->design, {{.why = "no podman", .configurations = 1}},
      [](const study::Trial&) -> Result<results::TrialResult> {
        return Fail(ErrorCode::kUnsupported, "no podman");
      },
      clock, {}, note);
  EXPECT_FALSE(bad.any_failed) << "a study skips what the machine cannot do";
  EXPECT_THAT(noted, ElementsAre(HasSubstr("no podman")));
}

}  // namespace
}  // namespace weir::trial
