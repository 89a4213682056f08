#include "study/length_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RequestsPerTrial, IsLengthenedForAP99) {
  StudyFile study;
  EXPECT_EQ(RequestsPerTrial(study, 100, 8), 13);
  study.targets.p99_ms = 20;
  EXPECT_EQ(RequestsPerTrial(study, 100, 8), 1000);
  EXPECT_EQ(RequestsPerTrial(study, 16000, 8), 2000);
  study.targets = {};
  study.objective.metric = "response_ms.p99";
  EXPECT_EQ(RequestsPerTrial(study, 100, 8), 1000);
}

TEST(RequestsPerTrial, IsLengthenedToTheResponsesThatTheStudyWants) {
  StudyFile study;
  EXPECT_FALSE(ResponsesPerTrial(study));
  study.trial.responses = 100;
  EXPECT_EQ(ResponsesPerTrial(study), 100);
  EXPECT_EQ(RequestsPerTrial(study, 100, 8), 100);
  EXPECT_EQ(RequestsPerTrial(study, 1600, 8), 200);
  study.targets.p99_ms = 20;
  EXPECT_EQ(ResponsesPerTrial(study), 1000);
  study.trial.responses = 10'000;
  EXPECT_EQ(RequestsPerTrial(study, 100, 8), 10'000);
}

TEST(LengthWarnings, ComeBeforeTheFirstTrial) {
  StudyFile study;
  Design design{.blocks = 3};
  EXPECT_THAT(LengthWarnings(study, design), IsEmpty());
  study.trial.seconds = 0.2;
  EXPECT_THAT(LengthWarnings(study, design), ElementsAre(HasSubstr("give trial: {seconds: 1} or more")));
  design.blocks = 1;
  study.trial.seconds = 2;
  EXPECT_THAT(LengthWarnings(study, design), ElementsAre(HasSubstr("repeats: 3 or more")));
}

TEST(PilotWarning, NamesTheLengthThatWouldDo) {
  const Configuration one{.label = "batch 8"};
  const auto warning = PilotWarning({}, one, {{"wall_s", 0.25}, {"images", 100}});
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("a trial of batch 8 is measured for 0.25 s"));
  EXPECT_THAT(*warning, HasSubstr("trial: {images: 500}"));
  EXPECT_FALSE(PilotWarning({}, one, {{"wall_s", 1.5}, {"images", 100}}));
  EXPECT_FALSE(PilotWarning({}, one, {{"throughput_images_per_s", 100}}));
}

}  // namespace
}  // namespace weir::study
