// From tables to predictions and back through a file, on measurements whose law is known.
#include "predict/predictor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "predict/checks.h"
#include "predict/job.h"
#include "predict/recipes.h"

namespace weir::predict {
namespace {

using testing::HasSubstr;

constexpr std::string_view kSpec = R"(
predict: made
rows: made.csv
id: row_id
hardware: {file: hardware.csv, key: gpu}
networks: {file: networks.csv, key: network}
target: {column: items_per_s, kind: rate, per: gpu_count}
devices: gpu_count
derive: {work: 3 * gflops}
terms: {compute: work / tflops, memory: moved / bandwidth, step: 1 / batch}
physics_by: [network]
ranges: [batch]
peaks: [tflops, work]
numbers:
  hardware: [tflops, bandwidth]
  network: [gflops, moved]
  run: [batch, gpu_count]
categories:
  network: [network]
)";

struct Gpu {
  const char* name;
  double tflops, bandwidth;
};
constexpr Gpu kGpus[] = {{"a", 10, 300}, {"b", 20, 400}, {"c", 30, 900},    {"d", 60, 700},
                         {"e", 15, 600}, {"f", 45, 500}, {"new", 120, 2000}};
struct Network {
  const char* name;
  double gflops, moved;
};
constexpr Network kNetworks[] = {{"small", 2, 50}, {"middle", 8, 90}, {"large", 40, 300}, {"wide", 10, 400}};

// ms: 45 % of the peak, 70 % of the bandwidth, 5 ms a step, 3 % more a device; noise of 2 %.
double TrueTime(const Gpu& gpu, const Network& network, double batch, int devices) {
  return (3 * network.gflops / gpu.tflops / 0.45 + network.moved / gpu.bandwidth / 0.7 + 5 / batch) *
         (1 + 0.03 * (devices - 1));
}

Facts MakeFacts() {
  std::string hardware = "gpu,tflops,bandwidth\n", networks = "network,gflops,moved\n";
  for (const Gpu& gpu : kGpus) hardware += fmt::format("{},{},{}\n", gpu.name, gpu.tflops, gpu.bandwidth);
  for (const Network& n : kNetworks) networks += fmt::format("{},{},{}\n", n.name, n.gflops, n.moved);
  return {.hardware = *Table::WithKey(*ParseCsv(hardware), "gpu"),
          .networks = *Table::WithKey(*ParseCsv(networks), "network")};
}

std::string MadeRows() {
  Random random(11);
  std::string csv = "row_id,gpu,network,batch,gpu_count,items_per_s,remark\n";
  int id = 0;
  for (const Gpu& gpu : std::span(kGpus).first(6)) {
    for (const Network& network : kNetworks) {
      for (const double batch : {8, 32, 64}) {
        for (const int devices : {1, 2, 4}) {
          const double time = TrueTime(gpu, network, batch, devices) * std::exp(0.02 * random.Normal());
          csv += fmt::format("r{},{},{},{},{},{:.6g},x\n", id++, gpu.name, network.name, batch, devices,
                             1000 * devices / time);
        }
      }
    }
  }
  return csv;
}

std::vector<Row> Rows(const Spec& spec, const Facts& facts) {
  return *MakeRows(spec, facts, Table(*ParseCsv(MadeRows())), WithTarget::kYes);
}

class MadePredictor : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Spec spec = *ParseSpec(kSpec);
    auto fitted = Predictor::Fit(spec, MakeFacts(), Rows(spec, MakeFacts()), {.threads = 2});
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
  static void RefusesWhatItKnowsNothingOfAndAnswersTheOthers();
  static void KnowsHowWellItDoesOnRowsLeftOut();
  static void IsTheSameAfterAFile();
  static void TheSameSeedGivesTheSameFileWhateverTheThreads();
  static void ADamagedFileIsRefused();
  static Predictor* predictor_;
};
Predictor* MadePredictor::predictor_ = nullptr;

void MadePredictor::IsRightInsideTheData() {
  const Prediction p = Ask("q,c,middle,32,2\n");
  EXPECT_EQ(p.regime, Regime::kInside);
  EXPECT_EQ(p.outside, "");
  EXPECT_NEAR(*p.value * TrueTime(kGpus[2], kNetworks[1], 32, 2) / 2000, 1, 0.06);
  EXPECT_LT(*p.low, *p.value);
  EXPECT_GT(*p.high, *p.value);
}

void MadePredictor::GoesTheWayOfThePhysicsOnHardwareNeverSeen() {
  const Prediction p = Ask("q,new,large,32,1\n");
  EXPECT_EQ(p.regime, Regime::kOutside);
  EXPECT_THAT(p.outside, HasSubstr("gpu new was never measured"));
  EXPECT_NEAR(*p.value * TrueTime(kGpus[6], kNetworks[2], 32, 1) / 1000, 1, 0.2);
}

void MadePredictor::SaysHowFarOutsideARowIs() {
  const Prediction p = Ask("q,a,small,640,8\n");
  EXPECT_EQ(p.regime, Regime::kOutside);
  EXPECT_THAT(p.outside, HasSubstr("batch 640 is 10 times beyond 8 to 64"));
  EXPECT_THAT(p.outside, HasSubstr("gpu_count 8 is above 4"));
}

void MadePredictor::RefusesWhatItKnowsNothingOfAndAnswersTheOthers() {
  const auto predictions =
      predictor_->Predict(Table(*ParseCsv("gpu_count,network,row_id,gpu,batch,unknown_column\n1,small,bad,"
                                          "H9000,8,7\n1,small,good,a,8,7\n1,small,empty,a,,7\n")));
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
  ASSERT_EQ(predictor_->rehearsed().size(), 4U);
  for (const Predictor::Rehearsed& rehearsed : predictor_->rehearsed()) {
    EXPECT_LT(rehearsed.score.mean, rehearsed.question == Question::kNetwork ? 0.4 : 0.15)
        << ToString(rehearsed.question);
    EXPECT_GT(rehearsed.coverage, 0.8) << ToString(rehearsed.question);
  }
}

void MadePredictor::IsTheSameAfterAFile() {
  const std::string saved = predictor_->Save();
  const auto loaded = Predictor::Load(saved);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->Save(), saved);
  const Table rows(*ParseCsv(MadeRows()));
  const auto before = predictor_->Predict(rows), after = loaded->Predict(rows);
  for (size_t i = 0; i < before->size(); ++i) {
    EXPECT_NEAR(*(*after)[i].value / *(*before)[i].value, 1, 1e-5);
  }
  EXPECT_EQ(ScoredCsv(*after), ScoredCsv(*Predictor::Load(saved)->Predict(rows)));
}

void MadePredictor::TheSameSeedGivesTheSameFileWhateverTheThreads() {
  const Spec spec = *ParseSpec(kSpec);
  const auto again = Predictor::Fit(spec, MakeFacts(), Rows(spec, MakeFacts()), {.threads = 1});
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->Save() == predictor_->Save());
}

void ExpectRefusalOrAnswers(const std::string& saved) {
  EXPECT_FALSE(Predictor::Load("{}").has_value());
  EXPECT_FALSE(Predictor::Load(saved.substr(0, saved.size() / 2)).has_value());
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = saved;
    damaged[static_cast<size_t>(random.Integer(0, std::ssize(damaged) - 1))] = '7';
    const auto loaded = Predictor::Load(damaged);  // refused, or still something that answers
    if (loaded) {
      EXPECT_TRUE(loaded->Predict(Table(*ParseCsv(MadeRows()))).has_value());
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

void MadePredictor::ADamagedFileIsRefused() {
  const std::string saved = predictor_->Save();
  ExpectRefusalOrAnswers(saved);
  // Intervals whose trees look beyond what a row has.
  ExpectRefusalWith(saved,
                    [](Json& json) { json["answers"][0]["spread"]["difficulty"]["columns"] = 60'000; });
}

// A fit takes seconds, and every test is a process of its own: so few tests, of several facts each.
TEST_F(MadePredictor, AnswersWithARegimeAndAnInterval) {
  IsRightInsideTheData();
  GoesTheWayOfThePhysicsOnHardwareNeverSeen();
  SaysHowFarOutsideARowIs();
  RefusesWhatItKnowsNothingOfAndAnswersTheOthers();
  KnowsHowWellItDoesOnRowsLeftOut();
}

TEST_F(MadePredictor, IsKeptInAFile) {
  IsTheSameAfterAFile();
  ADamagedFileIsRefused();
  TheSameSeedGivesTheSameFileWhateverTheThreads();
}

TEST(Predictor, LinearEstimatorsAreLinearAndSayTheirTerms) {
  const Spec spec = *ParseSpec(kSpec);
  const auto predictor =
      Predictor::Fit(spec, MakeFacts(), Rows(spec, MakeFacts()), {.estimator = "lr-sfs", .threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  EXPECT_LT(predictor->rehearsed().front().score.mean, 0.08);
  EXPECT_THAT(predictor->Explain(), HasSubstr("small|: time_ms = "));
  EXPECT_THAT(predictor->Explain(), HasSubstr("(1 / tflops)"));
}

TEST(Predictor, ADamagedLinearFileIsRefused) {
  const Spec spec = *ParseSpec(kSpec);
  const auto predictor =
      Predictor::Fit(spec, MakeFacts(), Rows(spec, MakeFacts()), {.estimator = "lr-sfs", .threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  const std::string saved = predictor->Save();
  ExpectRefusalOrAnswers(saved);
  const auto feature = [](Json& json) -> Json& {
    return json["estimators"][0]["linear"]["groups"]["small|"]["features"][0];
  };
  ExpectRefusalWith(saved, [&](Json& json) { feature(json).erase("factors"); });
  ExpectRefusalWith(saved, [&](Json& json) { feature(json)["factors"] = 7; });
  ExpectRefusalWith(saved, [&](Json& json) { feature(json)["factors"][0][1] = 1000; });
  ExpectRefusalWith(saved, [&](Json& json) { feature(json) = "no feature"; });
}

// Inside comes before hardware, but borrows what hardware's rehearsal says of the physical model.
TEST(Predictor, AQuestionThatIsNotRehearsedBorrowsAnIntervalFromAllThatAre) {
  std::string text(kSpec);
  const size_t terms = text.find("terms:");
  text.replace(terms, text.find('\n', terms) - terms, "terms: {step: 1 / batch}\nquestions: [hardware]");
  const Spec spec = *ParseSpec(text);
  const auto predictor =
      Predictor::Fit(spec, MakeFacts(), Rows(spec, MakeFacts()), {.estimator = "physical", .threads = 2});
  ASSERT_TRUE(predictor.has_value()) << predictor.error().message;
  const CandidateScore& physical = predictor->scores().front();
  ASSERT_EQ(physical.recipe, "physical");
  ASSERT_GT(std::log1p(physical.score.p90), 0.7);  // the width that is borrowed from nobody
  const auto predictions =
      predictor->Predict(Table(*ParseCsv("row_id,gpu,network,batch,gpu_count\nin,a,small,8,1\n")));
  EXPECT_NEAR(std::log(*predictions->front().high / *predictions->front().value),
              1.5 * std::log1p(physical.score.p90), 1e-6);
}

TEST(Recipes, AnEstimatorsNameTakesNoOtherAlong) {
  std::vector<std::string> trees, neighbours;
  for (const Recipe& recipe : Candidates(Question::kCount, 100, Groups::kOwn)) {
    if (BelongsTo(recipe, "trees")) trees.push_back(recipe.name);
    if (BelongsTo(recipe, "neighbours")) neighbours.push_back(recipe.name);
  }
  EXPECT_THAT(trees, testing::ElementsAre("trees"));
  EXPECT_THAT(neighbours, testing::ElementsAre("neighbours", "neighbours-own",
                                               "neighbours-carried", "neighbours-own-carried"));
}

TEST(Predictor, RefusesTooFewRowsAndUnknownEstimators) {
  const Spec spec = *ParseSpec(kSpec);
  std::vector<Row> rows = Rows(spec, MakeFacts());
  EXPECT_THAT(Predictor::Fit(spec, MakeFacts(), rows, {.estimator = "oracle"}).error().message,
              HasSubstr("\"oracle\""));
  rows.resize(5);
  EXPECT_THAT(Predictor::Fit(spec, MakeFacts(), rows, {}).error().message, HasSubstr("there are 5"));
}

std::vector<std::string> Found(const std::vector<Finding>& findings, Fault fault) {
  std::vector<std::string> ids;
  for (const Finding& finding : findings) {
    if (finding.fault == fault) ids.insert(ids.end(), finding.rows.begin(), finding.rows.end());
  }
  std::ranges::sort(ids);
  return ids;
}

TEST(Checks, FindCopiesAndWhatIsNoNumber) {
  const Table table(*ParseCsv("row_id,a\nx,1\ny,1\nz,nan\nu,4\nv,5\nw,6\nt,7\n"));
  const auto findings = CheckCells(*ParseSpec(kSpec), table);
  EXPECT_EQ(Found(findings, Fault::kDuplicate), std::vector<std::string>{"y"});
  EXPECT_EQ(Found(findings, Fault::kNotANumber), std::vector<std::string>{"z"});
}

TEST(Checks, FindSwappedUnitsImpossibleRatesAndNothingElse) {
  const Spec spec = *ParseSpec(kSpec);
  std::vector<Row> rows = Rows(spec, MakeFacts());
  for (const size_t i : {7U, 100U, 200U}) rows[i].time = *rows[i].time * 1000;
  rows[50].time = *rows[50].time / 1000;
  const auto findings = CheckTimes(Data::Make(spec, rows), Seed(1), 2);
  ASSERT_TRUE(findings.has_value());
  EXPECT_EQ(Found(*findings, Fault::kUnit), (std::vector<std::string>{"r100", "r200", "r50", "r7"}));
  EXPECT_EQ(Found(*findings, Fault::kAbovePeak), std::vector<std::string>{"r50"});
  EXPECT_EQ(Found(*findings, Fault::kFarFromPeers), std::vector<std::string>{});
}

TEST(Checks, FindAPeakThatIsTenTimesTooHigh) {
  std::string hardware = "gpu,vendor,cuda_cores,boost_clock_mhz,fp32_tflops\n";
  for (int i = 0; i < 10; ++i) {
    hardware += fmt::format("g{},{},{},1500,{}\n", i, i < 5 ? "old" : "new", 1000 + 100 * i,
                            (i == 3 ? 10 : 1) * (3.0 + 0.3 * i));
  }
  const Facts facts{.hardware = *Table::WithKey(*ParseCsv(hardware), "gpu")};
  const auto findings =
      CheckHardware(*ParseSpec(kSpec), facts, Table(*ParseCsv("row_id,gpu\np,g3\nq,g4\nr,g3\n")));
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
