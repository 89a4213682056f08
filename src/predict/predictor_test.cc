// From tables to predictions and back through a file, on measurements whose law is known.
#include "predict/predictor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "predict/job.h"
#include "predict/testing/made_set.h"
#include "predict/validation/checks.h"

namespace weir::predict {
namespace {

using testing::HasSubstr;

Spec MadeSpec() { return *ParseSpec(MadeSet::Make().spec); }

Facts MakeFacts() {
  const MadeSet made = MadeSet::Make();
  return {.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
          .networks = *Table::WithKey(*ParseCsv(made.networks), "network")};
}

Table MadeTable() { return Table(*ParseCsv(MadeSet::Make().rows)); }

std::vector<Row> Rows(const Spec& spec) {
  return *MakeRows(spec, MakeFacts(), MadeTable(), WithTarget::kYes);
}

class MadePredictor : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Spec spec = MadeSpec();
    auto fitted = Predictor::Fit(spec, MakeFacts(), Rows(spec), {.threads = 2});
    ASSERT_TRUE(fitted.has_value()) << fitted.error().message;
    predictor_ = new Predictor(std::move(*fitted));
  }
  static void TearDownTestSuite() {
    delete predictor_;
    predictor_ = nullptr;
  }
  static Prediction Ask(const std::string& row) {
    const auto predictions =
        predictor_->Predict(Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\n" + row)));
    EXPECT_TRUE(predictions.has_value());
    return predictions->front();
  }
  static void IsRightInsideTheData();
  static void GoesTheWayOfThePhysicsOnHardwareNeverSeen();
  static void SaysHowFarOutsideARowIs();
  static void WidensWithTheDistanceOfACount();
  static void RefusesWhatItKnowsNothingOfAndAnswersTheOthers();
  static void KnowsHowWellItDoesOnRowsLeftOut();
  static Predictor* predictor_;
};
Predictor* MadePredictor::predictor_ = nullptr;

void MadePredictor::IsRightInsideTheData() {
  const Prediction p = Ask("q,gpu-c,middle,32,2\n");
  EXPECT_EQ(p.regime, Regime::kInside);
  EXPECT_EQ(p.outside, "");
  EXPECT_NEAR(*p.value / MadeSet::ItemsPerSecond("gpu-c", "middle", 32, 2), 1, 0.06);
  EXPECT_LT(*p.low, *p.value);
  EXPECT_GT(*p.high, *p.value);
}

void MadePredictor::GoesTheWayOfThePhysicsOnHardwareNeverSeen() {
  const Prediction p = Ask("q,gpu-new,large,32,1\n");
  EXPECT_EQ(p.regime, Regime::kOutside);
  EXPECT_THAT(p.outside, HasSubstr("gpu gpu-new was never measured"));
  EXPECT_NEAR(*p.value / MadeSet::ItemsPerSecond("gpu-new", "large", 32, 1), 1, 0.2);
}

void MadePredictor::SaysHowFarOutsideARowIs() {
  const Prediction p = Ask("q,gpu-a,small,640,8\n");
  EXPECT_EQ(p.regime, Regime::kOutside);
  EXPECT_THAT(p.outside, HasSubstr("batch 640 is 10 times beyond 8 to 64"));
  EXPECT_THAT(p.outside, HasSubstr("gpu_count 8 is above 4"));
}

// The last of the counts 1, 2 and 4 was validated: one doubling. Eight is one more, 64 are four.
void MadePredictor::WidensWithTheDistanceOfACount() {
  const auto half = [](const Prediction& p) { return std::log(*p.high / *p.value); };
  const Prediction eight = Ask("q,gpu-a,small,32,8\n"), many = Ask("q,gpu-a,small,32,64\n");
  EXPECT_NEAR(half(many) / half(eight), 4, 0.01);
}

void MadePredictor::RefusesWhatItKnowsNothingOfAndAnswersTheOthers() {
  const auto predictions =
      predictor_->Predict(Table(*ParseCsv("gpu_count,network,row_id,gpu,batch,unknown_column\n1,small,bad,"
                                          "H9000,8,7\n1,small,good,gpu-a,8,7\n1,small,empty,gpu-a,,7\n")));
  ASSERT_TRUE(predictions.has_value());
  ASSERT_EQ(predictions->size(), 3U);
  EXPECT_EQ((*predictions)[0].regime, Regime::kRefused);
  EXPECT_FALSE((*predictions)[0].value.has_value());
  EXPECT_THAT((*predictions)[0].outside, HasSubstr("add it to hardware.csv"));
  EXPECT_EQ((*predictions)[1].regime, Regime::kInside);
  EXPECT_THAT((*predictions)[2].outside, HasSubstr("step (1 / batch) is unknown"));
  EXPECT_THAT(ScoredCsv(*predictions), HasSubstr("\nbad,,,,refused,"));
}

void MadePredictor::KnowsHowWellItDoesOnRowsLeftOut() {
  ASSERT_EQ(predictor_->splits().size(), 4U);
  for (const auto& split : predictor_->splits()) {
    EXPECT_LT(split.score.log_mean_percent, split.name == "network" ? 40 : 15) << split.name;
    EXPECT_GT(split.interval_coverage_percent, 80) << split.name;
  }
}

// The content of a file does not depend on how much was fitted: one split, on the first four kinds of
// hardware, is enough.
Result<Predictor> FitForAFile(int threads) {
  Spec spec = MadeSpec();
  spec.splits = {"inside"};
  std::vector<Row> rows = Rows(spec);
  rows.resize(144);
  return Predictor::Fit(std::move(spec), MakeFacts(), std::move(rows), {.threads = threads});
}

void ExpectRefusalOrAnswers(const std::string& saved) {
  const Table asked(
      *ParseCsv("row_id,gpu,network,batch,gpu_count,precision\nin,gpu-a,small,8,1,fp32\n"
                "count,gpu-b,wide,32,8,fp32\nhardware,gpu-new,large,64,2,fp32\n"));
  EXPECT_FALSE(Predictor::Load("{}").has_value());
  EXPECT_FALSE(Predictor::Load(saved.substr(0, saved.size() / 2)).has_value());
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = saved;
    damaged[static_cast<size_t>(random.Integer(0, std::ssize(damaged) - 1))] = '7';
    const auto loaded = Predictor::Load(damaged);  // refused, or still something that answers
    if (loaded) {
      EXPECT_TRUE(loaded->Predict(asked).has_value());
      EXPECT_FALSE(loaded->Explain().empty());
    }
  }
}

void ExpectRefusalWith(const std::string& saved, const std::function<void(Json&)>& damage) {
  Json json = *ParseJson(saved);
  damage(json);
  const auto loaded = Predictor::Load(DumpJson(json));
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::kCorrupt) << loaded.error().message;
}

class KeptPredictor : public testing::Test {
 protected:
  void SetUp() override {
    auto fitted = FitForAFile(2);
    ASSERT_TRUE(fitted.has_value()) << fitted.error().message;
    saved_ = fitted->Save();
    predictor_.emplace(std::move(*fitted));
  }
  void IsTheSameAfterAFile() const;
  void TheSameSeedGivesTheSameFileWhateverTheThreads() const;
  void ADamagedFileIsRefused() const;
  std::optional<Predictor> predictor_;
  std::string saved_;
};

void KeptPredictor::IsTheSameAfterAFile() const {
  const auto loaded = Predictor::Load(saved_);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->Save(), saved_);
  const Table rows = MadeTable();
  const auto before = predictor_->Predict(rows), after = loaded->Predict(rows);
  for (size_t i = 0; i < before->size(); ++i) {
    EXPECT_NEAR(*(*after)[i].value / *(*before)[i].value, 1, 1e-5);
  }
  EXPECT_EQ(ScoredCsv(*after), ScoredCsv(*Predictor::Load(saved_)->Predict(rows)));
}

void KeptPredictor::TheSameSeedGivesTheSameFileWhateverTheThreads() const {
  const auto again = FitForAFile(1);
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->Save() == saved_);
}

void KeptPredictor::ADamagedFileIsRefused() const {
  ExpectRefusalOrAnswers(saved_);
  // Intervals whose neighbours are rows that are not there.
  ExpectRefusalWith(saved_, [](Json& json) { json["models"][0]["spread"]["rows"][0] = 60'000; });
}

// A fit takes seconds, and every test is a process of its own: so few tests, of several facts each.
TEST_F(MadePredictor, AnswersWithARegimeAndAnInterval) {
  IsRightInsideTheData();
  GoesTheWayOfThePhysicsOnHardwareNeverSeen();
  SaysHowFarOutsideARowIs();
  WidensWithTheDistanceOfACount();
  RefusesWhatItKnowsNothingOfAndAnswersTheOthers();
  KnowsHowWellItDoesOnRowsLeftOut();
}

TEST_F(KeptPredictor, IsKeptInAFile) {
  IsTheSameAfterAFile();
  ADamagedFileIsRefused();
  TheSameSeedGivesTheSameFileWhateverTheThreads();
}

TEST(Predictor, LinearEstimatorsAreLinearAndSayTheirTerms) {
  const Spec spec = MadeSpec();
  const auto predictor = Predictor::Fit(spec, MakeFacts(), Rows(spec), {.estimator = "lr-sfs", .threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  EXPECT_LT(predictor->splits().front().score.log_mean_percent, 8);
  EXPECT_THAT(predictor->Explain(), HasSubstr("small|: time_ms = "));
  EXPECT_THAT(predictor->Explain(), HasSubstr("(1 / tflops)"));
}

TEST(Predictor, ADamagedLinearFileIsRefused) {
  const Spec spec = MadeSpec();
  const auto predictor = Predictor::Fit(spec, MakeFacts(), Rows(spec), {.estimator = "lr-sfs", .threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  const std::string saved = predictor->Save();
  ExpectRefusalOrAnswers(saved);
  const auto feature = [](Json& json) -> Json& {
    return json["models"][0]["model"]["linear"]["groups"]["small|"]["features"][0];
  };
  ExpectRefusalWith(saved, [&](Json& json) { feature(json).erase("factors"); });
  ExpectRefusalWith(saved, [&](Json& json) { feature(json)["factors"] = 7; });
  ExpectRefusalWith(saved, [&](Json& json) { feature(json)["factors"][0]["column"] = 1000; });
  ExpectRefusalWith(saved, [&](Json& json) { feature(json) = "no feature"; });
}

// Inside comes before hardware, but borrows what hardware's validation says of the physical model.
TEST(Predictor, ASplitWithoutCrossValidationBorrowsAnInterval) {
  std::string text = MadeSet::Make().spec;
  const size_t terms = text.find("terms:");
  text.replace(terms, text.find('\n', terms) - terms, "terms: {step: 1 / batch}\nsplits: [hardware]");
  const Spec spec = *ParseSpec(text);
  const auto predictor =
      Predictor::Fit(spec, MakeFacts(), Rows(spec), {.estimator = "physical", .threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  const auto& physical = predictor->splits().front().candidates.front();
  ASSERT_EQ(physical.name, "physical");
  const double p90 = std::log1p(physical.score.p90_percent / 100);
  ASSERT_GT(p90, 0.7);  // the width that is borrowed from nobody
  const auto predictions =
      predictor->Predict(Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\nin,gpu-a,small,8,1\n")));
  EXPECT_NEAR(std::log(*predictions->front().high / *predictions->front().value), 1.5 * p90, 1e-6);
}

// Two counts do not cross-validate growth, so the model of rows inside continues beyond them.
TEST(Predictor, FewCountsContinueWithTheModelOfRowsInside) {
  const Spec spec = MadeSpec();
  std::vector<Row> rows;
  for (Row& row : Rows(spec)) {
    if (row.devices <= 2) rows.push_back(std::move(row));
  }
  const auto predictor = Predictor::Fit(spec, MakeFacts(), rows, {.estimator = "neighbours", .threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  double p90 = 0;
  for (const auto& split : predictor->splits()) {
    EXPECT_NE(split.name, "count");
    p90 = std::max(p90, split.score.p90_percent / 100);
  }
  const double half_width = std::max(0.4, std::log1p(p90));
  const auto loaded = Predictor::Load(predictor->Save());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  for (const Predictor& one : {*predictor, *loaded}) {
    const auto predictions = one.Predict(
        Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\nq,gpu-a,small,8,4\nr,gpu-a,small,8,16\n")));
    const auto half = [&](size_t i) {
      return std::log((*predictions)[i].high.value() / (*predictions)[i].value.value());
    };
    EXPECT_NEAR(half(0), half_width, 1e-6);
    EXPECT_NEAR(half(1), 3 * half_width, 1e-6);
  }
}

// All rows but a few are of one GPU, so only those few can be left out; they happen to be three times slower.
TEST(Predictor, OneGroupLeftOutSaysNothingOfAnother) {
  const Spec spec = MadeSpec();
  std::vector<Row> rows;
  size_t few = 0;
  for (Row& row : Rows(spec)) {
    if (row.hardware == "gpu-b" && ++few <= 12) {
      row.time = *row.time * 3;
    } else if (row.hardware != "gpu-a") {
      continue;
    }
    rows.push_back(std::move(row));
  }
  const auto predictor = Predictor::Fit(spec, MakeFacts(), rows, {.threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  double p90 = 0;
  for (const auto& split : predictor->splits()) {
    for (const auto& candidate : split.candidates) {
      if (candidate.name == "physical" && split.name != "network")
        p90 = std::max(p90, candidate.score.p90_percent / 100);
    }
  }
  const auto predictions =
      predictor->Predict(Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\nq,gpu-new,small,8,1\n")));
  const Prediction& p = predictions->front();
  EXPECT_NEAR(std::log(*p.high / *p.low) / 2, 1.5 * std::max(0.7, std::log1p(p90)), 1e-6);
}

TEST(ParseEstimator, RefusesUnknownNames) {
  for (const char* text : {"oracle", "trees", "physical,neighbours", ""})
    EXPECT_THAT(ParseEstimator(text).error().message, HasSubstr("there is no estimator")) << text;
  for (const char* text : {"neighbours", "lr-sfs"}) EXPECT_EQ(*ParseEstimator(text), text);
}

TEST(Predictor, RefusesTooFewRows) {
  const Spec spec = MadeSpec();
  std::vector<Row> rows = Rows(spec);
  rows.resize(5);
  EXPECT_THAT(Predictor::Fit(spec, MakeFacts(), rows, {}).error().message, HasSubstr("there are 5"));
}

std::vector<std::string> Found(const std::vector<Finding>& findings, std::string_view fault) {
  std::vector<std::string> ids;
  for (const Finding& finding : findings) {
    if (finding.fault == fault) ids.insert(ids.end(), finding.rows.begin(), finding.rows.end());
  }
  std::ranges::sort(ids);
  return ids;
}

TEST(Checks, FindCopiesAndWhatIsNoNumber) {
  const Table table(*ParseCsv("row_id,a\nx,1\ny,1\nz,nan\nu,4\nv,5\nw,6\nt,7\n"));
  const auto findings = CheckCells(MadeSpec(), table);
  EXPECT_EQ(Found(findings, Fault::kDuplicate), std::vector<std::string>{"y"});
  EXPECT_EQ(Found(findings, Fault::kNotANumber), std::vector<std::string>{"z"});
}

TEST(Checks, FindSwappedUnitsImpossibleRatesAndNothingElse) {
  const Spec spec = MadeSpec();
  std::vector<Row> rows = Rows(spec);
  for (const size_t i : {7U, 100U, 200U}) rows[i].time = *rows[i].time * 1000;
  rows[50].time = *rows[50].time / 1000;
  const auto findings = CheckTimes(Data::Make(spec, rows), Seed(1), 2);
  EXPECT_EQ(Found(findings, Fault::kUnit), (std::vector<std::string>{"r100", "r200", "r50", "r7"}));
  EXPECT_EQ(Found(findings, Fault::kAbovePeak), std::vector<std::string>{"r50"});
  EXPECT_EQ(Found(findings, Fault::kFarFromPeers), std::vector<std::string>{});
}

TEST(Checks, FindAPeakThatIsTenTimesTooHigh) {
  std::string hardware = "gpu,vendor,cuda_cores,boost_clock_mhz,fp32_tflops\n";
  for (int i = 0; i < 10; ++i) {
    hardware += fmt::format("g{},{},{},1500,{}\n", i, i < 5 ? "old" : "new", 1000 + 100 * i,
                            (i == 3 ? 10 : 1) * (3.0 + 0.3 * i));
  }
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(hardware), "gpu")};
  const auto findings = CheckFacts(MadeSpec(), facts, Table(*ParseCsv("row_id,gpu\np,g3\nq,g4\nr,g3\n")));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.front().rows, (std::vector<std::string>{"p", "r"}));
  EXPECT_THAT(findings.front().what, HasSubstr("hardware g3: fp32_tflops is 10 times"));
}

TEST(Spec, TellsTheLineOfWhatIsWrong) {
  const auto refusal = [](std::string_view yaml) { return ParseSpec(yaml).error().message; };
  EXPECT_THAT(refusal("predict: a\nrow: b\n"), HasSubstr("line 2: row: no such key"));
  EXPECT_THAT(refusal("predict: a\nterms: {x: 1 +}\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("predict: [a\n"), HasSubstr("line"));
  EXPECT_THAT(refusal("predict: a\n"), HasSubstr("key rows is missing"));
}

}  // namespace
}  // namespace weir::predict
