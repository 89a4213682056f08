#include <gtest/gtest.h>

#include "results/check_results.h"
#include "results/fit_result.h"
#include "results/identities_result.h"
#include "results/model_result.h"
#include "results/predict_result.h"
#include "results/sample_header.h"
#include "results/study_provenance.h"

namespace weir::results {
namespace {

template <typename T>
void ExpectComesBack(const T& value) {
  const auto again = T::FromJson(*ParseJson(DumpJson(value.ToJson())));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, value);
}

TEST(MoreResults, ComeBackFromTheirJson) {
  ExpectComesBack(
      ValidateResult{.findings = {{.rule = "split", .where = "levels[0]", .what = "w", .fatal = true}},
                     .keeps_the_rules = false});
  ExpectComesBack(
      VerifyResult{.faults = 1, .sets = {{.folder = "a", .images = 3, .faults = 1, .examples = {"x"}}}});
  ExpectComesBack(DoctorResult{
      .findings = {{.kind = "steal", .severity = "warning", .what = "w", .meaning = "m", .remedy = "r"}},
      .warnings = 1,
      .provenance = Json::object()});
  ExpectComesBack(
      ModelMakeResult{.folder = "f", .model_bytes = 7, .expected_accuracy = 0.9, .command = "weir"});
  ModelFacts facts;
  facts.name = "m";
  facts.inputs = {{.name = "x", .datatype = "FP32", .shape = std::vector<int64_t>{-1, 3}}};
  facts.parameters = 5;
  facts.other_opsets = {{"ai.onnx.ml", 3}};
  ExpectComesBack(facts);
  StudyProvenance provenance;
  provenance.common.host = "h";
  provenance.materials.models["m"] = {.configuration = "c", .file_bytes = 9, .file_hash = "d"};
  provenance.resolved.data = "/data";
  ExpectComesBack(provenance);
  ExpectComesBack(SampleHeader{.model = "m", .levels = {"1", "2"}});
}

TEST(IdentitiesResult, ComesBackFromItsJson) {
  IdentitiesResult result;
  result.index = {.dimension = 4, .vectors = 5, .lists = 2};
  result.matches = {{.number = 0, .name = "q", .matches = {{.name = "a", .score = 0.5}}}};
  result.tpir = IdentitiesResult::Share{.value = 0.9, .low = 0.8, .high = 1};
  result.search_us = IdentitiesResult::Latency{.p50 = 1, .p90 = {}, .p99 = {}, .max = 2};
  ExpectComesBack(result);
  result.search_us = IdentitiesResult::Latency{};
  EXPECT_TRUE(result.ToJson()["search_us"].is_null());
  ExpectComesBack(result);
}

FitResult OneFit() {
  FitResult fit;
  fit.name = "s";
  fit.target = "ms";
  fit.fitted = 7;
  FitResult::Split split;
  split.name = FitResult::Split::kInside;
  split.score.median_percent = 3;
  split.candidates = {{.score = {.rows = 2}, .name = "trees", .weight = 0.5}};
  split.by_network = {{.score = {.rows = 2}, .name = "vgg"}};
  split.worst = std::vector<FitResult::Case>{{.row = "r", .measured_ms = 2}};
  fit.splits = {split};
  fit.learning_curve = {{.score = {.rows = 9}, .fitted = 4}};
  fit.findings = {{.fault = "unit", .what = "w", .rows = {"r"}}};
  return fit;
}

TEST(FitsResult, PutsTheKeysOfAnOnlySpecBesideItsOwn) {
  ExpectComesBack(OneFit());
  FitsResult result{.only = OneFit(), .provenance = Json::object(), .command = "weir fit"};
  EXPECT_EQ(result.ToJson()["target"], "ms");
  EXPECT_EQ(result.ToJson()["splits"][0]["median_percent"], 3);
  EXPECT_EQ(FitsResult::FromJson(result.ToJson())->only->splits, result.only->splits);
  result.only.reset();
  result.fits = {OneFit(), OneFit()};
  ExpectComesBack(result);
}

TEST(PredictAnswers, HaveTheTargetsNameAsAKey) {
  PredictAnswers answers{.name = "s", .target = "step_ms"};
  answers.answers.push_back({.row = {{"batch", "8"}}, .regime = "inside", .value = 1.5});
  const Json one = answers.ToJson()["answers"][0];
  EXPECT_EQ(one["step_ms"], 1.5);
  EXPECT_FALSE(one.contains("outside"));
  EXPECT_FALSE(one.contains("job"));
}

TEST(PredictEngines, NameTheFirstEngineApart) {
  const PredictEngines engines{.name = "s", .engines = {{.hardware = "a", .engine = "emulated:base=1ms"}}};
  EXPECT_EQ(engines.ToJson()["engine"], "emulated:base=1ms");
  EXPECT_FALSE(engines.ToJson()["engines"][0].contains("outside"));
}

}  // namespace
}  // namespace weir::results
