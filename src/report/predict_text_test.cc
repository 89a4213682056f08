#include "report/predict_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/fit_text.h"

namespace weir::report {
namespace {

using results::PredictAnswers, results::PredictEngines;

PredictAnswers::Answer AnswerOf(const char* gpu, const char* batch) {
  return {.row = {{"gpu", gpu}, {"batch", batch}},
          .regime = "inside",
          .value = 20,
          .low = 10,
          .high = 40,
          .outside = {},
          .shares = {{"compute", 0.3}, {"memory", 0.695}, {"step", 0.005}},
          .job = {}};
}

TEST(AnswersText, OneIsALineItsSharesAndItsJob) {
  PredictAnswers answers{
      .name = "p", .target = "ms", .answers = {AnswerOf("gpu-a", "8")}, .taken_as_unknown = {}};
  answers.answers[0].job = PredictAnswers::Job{.hours = 2, .low_hours = 1, .high_hours = 4, .cost = 6};
  answers.answers[0].job->low_cost = 3;
  answers.answers[0].job->high_cost = 12;
  EXPECT_EQ(AnswersText(answers, {.hardware = "gpu", .batch = "batch"}),
            "gpu-a: 20.0 ms (10.0 to 40.0), inside\n  70 % memory, 30 % compute\n"
            "  the whole job: 2.00 h (1.00 to 4.00), cost 6.00 (3.00 to 12.0)\n");
  answers.answers[0].value.reset();
  answers.answers[0].outside = "why";
  EXPECT_EQ(AnswersText(answers, {}), "p: refused: why\n");
}

TEST(AnswersText, SeveralAreATable) {
  const PredictAnswers answers{.name = "p",
                               .target = "ms",
                               .answers = {AnswerOf("gpu-a", "8"), AnswerOf("b", "16")},
                               .taken_as_unknown = {}};
  EXPECT_EQ(AnswersText(answers, {.hardware = "gpu", .batch = "batch"}),
            "hardware  regime  batch    ms   low  high  time goes to\n"
            "gpu-a     inside      8  20.0  10.0  40.0  70 % memory, 30 % compute\n"
            "b         inside     16  20.0  10.0  40.0  70 % memory, 30 % compute\n");
}

TEST(EnginesText, OneAloneHasNoName) {
  PredictEngines engines{.name = "p", .engines = {{}}};
  engines.engines[0].hardware = "gpu-a";
  engines.engines[0].engine = "emulated:base=1ms";
  engines.engines[0].batches = {1, 8};
  EXPECT_EQ(EnginesText(engines), "emulated:base=1ms\n");
  engines.engines.push_back(engines.engines[0]);
  engines.engines[1].batches_outside = 1;
  engines.engines[1].outside = "batch 1";
  EXPECT_EQ(EnginesText(engines), "gpu-a: emulated:base=1ms\ngpu-a: emulated:base=1ms\n");
  EXPECT_THAT(EngineNotes(engines),
              testing::ElementsAre("gpu-a: at most 0.0 % from the predicted times of batches 1, 8",
                                   "gpu-a: at most 0.0 % from the predicted times of batches 1, 8",
                                   "gpu-a: 1 of 2 batches are outside the data: batch 1"));
}

TEST(FitText, HasTheFirstFindingOfEachKindAndTheScores) {
  results::FitResult fit;
  fit.name = "made";
  fit.rows = 216;
  fit.findings = {{"unusable", "no gpu", {"a"}}, {"unusable", "no time", {"b"}}, {"kink", "a jump", {}}};
  const std::string check = FitText(fit);
  EXPECT_EQ(check,
            "made: 216 rows; 0 skipped, 0 unusable, 0 left out\n"
            "  kink                 1  e.g. the tables: a jump\n"
            "  unusable             2  e.g. a: no gpu\n");
  fit.splits.emplace(1);
  fit.splits->front().name = "inside";
  fit.splits->front().candidates = {{.score = {}, .name = "trees", .weight = 0.25}};
  EXPECT_THAT(FitText(fit), testing::AllOf(testing::HasSubstr("inside     the mixture"),
                                           testing::HasSubstr("  trees"), testing::HasSubstr("   0.25\n")));
}

TEST(FitsText, HasALineForEachFitOfSeveral) {
  results::FitsResult fits;
  EXPECT_EQ(FitsText(fits), "");
  results::FitResult& fit = fits.fits.emplace(1).front();
  fit.predictor = "folder/train.json";
  fit.fitted = 2160;
  fit.wall_s = 3;
  fit.splits.emplace(1);
  fit.splits->front().name = "hardware";
  fit.splits->front().score.median_percent = 4.25;
  EXPECT_THAT(FitsText(fits), testing::EndsWith("network\n"
                                                "train                2,160      3              -"
                                                "              -      4.2 / 0.0              -\n"));
}

}  // namespace
}  // namespace weir::report
