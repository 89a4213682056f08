#include "trial/study_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::trial {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

class StudyNotesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto study = study::ParseStudy(
        "study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 2\n"
        "figures: [{title: rate, metric: throughput_images_per_s, x: batch}]\n");
    ASSERT_TRUE(study) << study.error().message;
    study_ = std::move(*study);
    auto design = study::MakeDesign(study_);
    ASSERT_TRUE(design);
    design_ = std::move(*design);
    notes_ = std::make_unique<StudyNotes>(study_, design_,
                                          [this](const std::string& text) { noted_.push_back(text); });
  }

  study::PlayedTrials Played(results::Verdict verdict, Json metrics = {{"throughput_images_per_s", 100.0}}) {
    return {.trial = design_.trials[1],
            .record = {.metrics = std::move(metrics), .verdict = std::move(verdict)}};
  }

  study::StudyFile study_;
  study::Design design_;
  std::vector<std::string> noted_;
  std::unique_ptr<StudyNotes> notes_;
};

TEST_F(StudyNotesTest, SaysNothingOfAGoodTrial) {
  notes_->Add(Played({}));
  EXPECT_THAT(noted_, IsEmpty());
}

TEST_F(StudyNotesTest, NotesEachFailureOnce) {
  const results::Verdict failed{.standing = results::Standing::kFailed,
                                .message = "the server did not start"};
  notes_->Add(Played(failed));
  notes_->Add(Played(failed));
  EXPECT_THAT(noted_, ElementsAre(HasSubstr("the server did not start")));
}

TEST_F(StudyNotesTest, TrialsDoNotRepeatWhatTheMachineCannotDo) {
  notes_->Add({{.why = "podman is not there: install it", .configurations = 2}});
  notes_->Add(
      Played({.standing = results::Standing::kSkipped, .message = "podman is not there: install it"}));
  EXPECT_THAT(noted_, ElementsAre(HasSubstr("2 of 2 configurations cannot be played here")));
}

TEST_F(StudyNotesTest, NotesAMissingMetricAtTheFirstTrialThatShouldHaveIt) {
  notes_->Add(Played({}, {{"throughput_image_per_s", 100.0}}));
  notes_->Add(Played({}, {{"throughput_image_per_s", 100.0}}));
  EXPECT_THAT(noted_, ElementsAre(HasSubstr("objective: the first trial that should have it"),
                                  HasSubstr("did you mean throughput_image_per_s?")));
}

TEST_F(StudyNotesTest, TextsNameTheTrialsAndTheTimeLeft) {
  EXPECT_THAT(DesignText(TextStyle(false), study_, design_), HasSubstr("s: 2 configurations in 2 blocks"));
  EXPECT_THAT(TrialsText(design_), HasSubstr("reference-start"));
  EXPECT_EQ(ProgressText({.done = 1, .total = 8, .failed = 1, .left_s = 61}, Played({}), design_),
            ", " + design_.configurations[design_.trials[1].configuration].label + ", 1 failed, 2 min left");
}

}  // namespace
}  // namespace weir::trial
