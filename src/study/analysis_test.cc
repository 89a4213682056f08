#include "study/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "study/figures.h"
#include "study/result.h"
#include "study/two_studies.h"

namespace weir::study {
namespace {

using results::Standing;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kRate = "throughput_images_per_s";

struct Case {
  StudyFile study;
  Design design;
  std::vector<PlayedTrials> played;

  Analysis Analyse() const { return study::Analyse(study, design, played); }
  results::StudyResult Result() const {
    const StudyJournal journal{.header = {.study = study.ToJson(), .provenance = Json::object()},
                               .played = played};
    return MakeResult({.study = study, .design = design, .journal = journal});
  }
  PlayedTrials& Find(size_t configuration, int block, Role role = Role::kTrial) {
    for (PlayedTrials& one : played) {
      if (one.trial.configuration == configuration && one.trial.block == block && one.trial.role == role)
        return one;
    }
    ADD_FAILURE();
    return played[0];
  }
};

// Plays every trial with the metrics that `measure` gives.
Case Make(const std::string& yaml, const std::function<Json(const Trial&)>& measure) {
  auto study = ParseStudy(yaml);
  EXPECT_TRUE(study) << study.error().message;
  auto design = MakeDesign(*study);
  EXPECT_TRUE(design) << design.error().message;
  Case made{.study = std::move(*study), .design = std::move(*design)};
  for (const Trial& trial : made.design.trials) {
    PlayedTrials played{.trial = trial};
    played.record.factors = made.design.configurations[trial.configuration].factors;
    played.record.metrics = measure(trial);
    made.played.push_back(std::move(played));
  }
  return made;
}

constexpr const char* kTwo = "study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 5\n";
const std::vector<double> kOne{100.1, 99.2, 101.5, 98.8, 100.9};
const std::vector<double> kEight{110.2, 108.9, 112.4, 109.7, 111.3};

// Configuration 0 is batch 1, 1 is batch 8; the references rise by 1 a block, and fall by 1 within.
Case Two() {
  return Make(kTwo, [](const Trial& trial) {
    const auto block = static_cast<size_t>(trial.block);
    double rate = trial.configuration == 0 ? kOne[block] : kEight[block];
    if (trial.role == Role::kReferenceStart) rate = 100.0 + trial.block;
    if (trial.role == Role::kReferenceMiddle) rate = 101.0 + trial.block;
    if (trial.role == Role::kReferenceEnd) rate = 99.0 + trial.block;
    return Json{{kRate, rate},
                {"stages_ms", {{"infer", 2 * rate}}},
                {"bottleneck", trial.block == 0 ? "decode" : "infer"}};
  });
}

const Figures& Of(const ConfigurationResult& result, const std::string& metric) {
  return *std::ranges::find(result.metrics, metric, &Figures::metric);
}

// All expected numbers by Python's statistics and math; t by bisection of its finite sums (Abramowitz and
// Stegun, 26.7.3, 26.7.4).
TEST(Analyse, GivesTheNumbersWorkedOutElsewhere) {
  const Analysis analysis = Two().Analyse();
  const Figures& one = Of(analysis.configurations[0], kRate);
  EXPECT_EQ(one.summary.n, 5);
  EXPECT_NEAR(one.summary.mean, 100.1, 1e-9);
  EXPECT_NEAR(*one.summary.standard_deviation, 1.1291589790636227, 1e-9);
  EXPECT_NEAR(*one.summary.standard_error, 0.5049752469181045, 1e-9);
  EXPECT_NEAR(*one.summary.low, 98.69796394744817, 1e-9);
  EXPECT_NEAR(*one.summary.high, 101.50203605255182, 1e-9);
  EXPECT_EQ(one.median.median, 100.1);
  EXPECT_EQ(one.median.low, std::nullopt);  // five are too few
  const Figures& eight = Of(analysis.configurations[1], kRate);
  EXPECT_NEAR(eight.summary.mean, 110.5, 1e-9);
  EXPECT_NEAR(*eight.summary.low, 108.79525366163742, 1e-9);
  EXPECT_EQ(eight.median.median, 110.2);
}

TEST(Analyse, FlattensAllMetrics) {
  const Analysis analysis = Two().Analyse();
  EXPECT_NEAR(Of(analysis.configurations[0], "stages_ms.infer").summary.mean, 200.2, 1e-9);
  EXPECT_EQ(analysis.configurations[1].words.at("bottleneck"),
            (std::map<std::string, int64_t>{{"decode", 1}, {"infer", 4}}));
}

TEST(Analyse, PairsConfigurationsInTheirBlocks) {
  const Analysis analysis = Two().Analyse();
  ASSERT_THAT(analysis.comparisons, SizeIs(2));  // two metrics of numbers
  const Comparison& comparison = analysis.comparisons[0];
  EXPECT_EQ(comparison.configuration, 1u);
  EXPECT_EQ(comparison.against, 0u);
  EXPECT_EQ(comparison.ratio.n, 5);
  EXPECT_NEAR(comparison.ratio.ratio, 1.1038842448679003, 1e-9);
  EXPECT_NEAR(*comparison.ratio.low, 1.0976776300477995, 1e-9);
  EXPECT_NEAR(*comparison.ratio.high, 1.1101259538417587, 1e-9);
  EXPECT_NEAR(*comparison.smallest_difference, std::expm1(0.00754929469891942), 1e-9);
  EXPECT_EQ(comparison.told, Told::kHigher);
}

TEST(Analyse, FollowsTheReferenceOverTheBlocks) {
  const StudyDrift drift = Two().Analyse().drift;
  EXPECT_EQ(drift.blocks, 5);
  EXPECT_NEAR(*drift.change, 0.0400018310978891, 1e-9);
  EXPECT_NEAR(*drift.low, 0.03956709773541252, 1e-9);
  EXPECT_NEAR(*drift.high, 0.04043674626017144, 1e-9);
  EXPECT_NEAR(drift.within_block->ratio, 0.9901941838332553, 1e-9);
  EXPECT_NEAR(*drift.within_block->low, 0.990005426251767, 1e-9);
  EXPECT_EQ(drift.trend, std::nullopt);  // ten blocks are needed
  EXPECT_THAT(drift.restless, IsEmpty());
  EXPECT_TRUE(drift.flagged);  // 4 % in all, and sure of it
}

TEST(Analyse, FlagsABlockInWhichTheMachineWasBusy) {
  Case calm = Make(kTwo, [](const Trial&) { return Json{{kRate, 100.0}}; });
  EXPECT_FALSE(calm.Analyse().drift.flagged);
  for (const Role role : {Role::kReferenceStart, Role::kReferenceMiddle, Role::kReferenceEnd})
    calm.Find(0, 2, role).record.metrics[kRate] = 90.0;
  const StudyDrift drift = calm.Analyse().drift;
  EXPECT_TRUE(drift.flagged);
  ASSERT_THAT(drift.restless, SizeIs(1));
  EXPECT_EQ(drift.restless[0].block, 2);
  EXPECT_NEAR(drift.restless[0].ratio, 0.9, 1e-12);
  EXPECT_FALSE(drift.shown);
}

TEST(Analyse, LeavesOutWhatIsInvalidOrFailedAndMarksWhatIsSuspect) {
  Case two = Two();
  two.Find(1, 0).record.verdict.standing = Standing::kInvalid;
  two.Find(1, 1).record.verdict.standing = Standing::kFailed;
  two.Find(1, 2).record.verdict.standing = Standing::kSuspect;
  const Analysis analysis = two.Analyse();
  EXPECT_EQ(Of(analysis.configurations[1], kRate).summary.n, 3);
  EXPECT_NEAR(Of(analysis.configurations[1], kRate).summary.mean, (112.4 + 109.7 + 111.3) / 3, 1e-9);
  EXPECT_EQ(analysis.configurations[1].tally.suspect, 1);
  EXPECT_EQ(analysis.configurations[1].tally.valid, 2);
  EXPECT_EQ(analysis.comparisons[0].ratio.n, 3);
  EXPECT_EQ(analysis.tally.invalid, 1);
  EXPECT_EQ(analysis.tally.failed, 1);
}

TEST(Analyse, CountsTheSecondTryInThePlaceOfTheFirst) {
  Case two = Two();
  PlayedTrials again = two.Find(1, 0);
  two.Find(1, 0).record.verdict.standing = Standing::kFailed;
  again.attempt = 2;
  two.played.push_back(again);
  const Analysis analysis = two.Analyse();
  EXPECT_EQ(Of(analysis.configurations[1], kRate).summary.n, 5);
  EXPECT_EQ(analysis.tally.failed, 0);
  EXPECT_EQ(analysis.retried, 1);
}

TEST(Analyse, NamesTheBestByTheObjective) {
  const Answers answers = Two().Analyse().answers;
  ASSERT_THAT(answers.answers, SizeIs(1));
  EXPECT_EQ(answers.answers[0].best, 1u);
  ASSERT_THAT(answers.answers[0].others, SizeIs(1));
  EXPECT_EQ(answers.answers[0].others[0].configuration, 0u);
  EXPECT_EQ(answers.answers[0].others[0].told, Told::kLower);
  Case lower = Two();
  lower.study.objective.better = Better::kLower;
  EXPECT_EQ(lower.Analyse().answers.answers[0].best, 0u);
  lower.study.objective.metric = "nothing";
  EXPECT_THAT(lower.Analyse().answers.answers, IsEmpty());
  EXPECT_EQ(lower.Analyse().answers.none, "no trial has the metric that decides, nothing");
}

TEST(Analyse, NamesTheMetricsThatNoTrialHas) {
  Case slip = Two();
  slip.study.objective.metric = "thoughput_images_per_s";
  slip.study.figures.push_back(
      {.title = "F", .metric = "response_ms.p99", .x = {}, .series = {}, .where = {}});
  const std::vector<MissingMetric> missing = slip.Analyse().missing;
  ASSERT_THAT(missing, SizeIs(2));
  EXPECT_EQ(missing[0].metric, "thoughput_images_per_s");
  EXPECT_EQ(missing[0].wanted_by, "objective");
  EXPECT_EQ(missing[0].nearest, kRate);
  EXPECT_EQ(missing[1].wanted_by, "figure F");
  EXPECT_EQ(missing[1].nearest, std::nullopt);
  EXPECT_EQ(slip.Result().missing_metrics.at(0).nearest, kRate);
  EXPECT_THAT(Two().Result().missing_metrics, SizeIs(0));
  slip.played.clear();
  EXPECT_THAT(slip.Analyse().missing, IsEmpty());
}

TEST(Analyse, WantsTheMetricOfAFigureWhereTheFigureShows) {
  StudyFile study;
  study.figures.push_back({.title = "F", .metric = "m", .x = {}, .series = {}, .where = {{{"batch", {8}}}}});
  const std::vector<WantedMetric> wanted = WantedMetrics(study);
  ASSERT_THAT(wanted, SizeIs(2));
  EXPECT_TRUE(Shows(wanted[0].where, {{"batch", 1}}));
  EXPECT_FALSE(Shows(wanted[1].where, {{"batch", 1}}));
  EXPECT_TRUE(Shows(wanted[1].where, {{"batch", 8}}));
}

TEST(Analyse, RanksNothingUnlessMostOfItsTrialsAreValid) {
  Case two = Two();
  const auto disturb = [](results::TrialResult& record) {
    record.verdict = {};
    record.verdict.Add(Standing::kSuspect, {results::Reason::kForeignCpu, "others used 0.7 of 2 cores"});
  };
  for (int block = 0; block < 3; ++block) disturb(two.Find(1, block).record);
  EXPECT_EQ(two.Analyse().answers.answers[0].best, 0u);
  EXPECT_THAT(two.Analyse().answers.answers[0].others, IsEmpty());
  // One lucky VALID trial makes no headline.
  for (PlayedTrials& one : two.played) disturb(one.record);
  two.Find(0, 4).record.verdict = {};
  const Answers none = two.Analyse().answers;
  EXPECT_THAT(none.answers, IsEmpty());
  EXPECT_EQ(none.none, "24 of 25 trials were disturbed by other processes");
  EXPECT_EQ(two.Result().no_answer, none.none);
  EXPECT_THAT(two.Result().answers, SizeIs(0));
}

TEST(Analyse, RanksRealEnginesApartFromEmulatedOnes) {
  const Case made = Make(
      "study: s\nmodel: m\ndata: d\nfactors: {engine: [onnxruntime, openvino, "
      "\"emulated:base=1ms\"]}\nrepeats: "
      "5\n",
      [](const Trial& trial) {
        return Json{{kRate, (100.0 + 50 * static_cast<double>(trial.configuration)) *
                                (1 + 0.01 * (trial.block % 3))}};
      });
  const Answers answers = made.Analyse().answers;
  ASSERT_THAT(answers.answers, SizeIs(2));
  EXPECT_EQ(answers.answers[0].among, "real engines");
  EXPECT_EQ(answers.answers[0].best, 1u);
  EXPECT_THAT(answers.answers[0].others, SizeIs(1));
  EXPECT_EQ(answers.answers[1].among, "emulated accelerators");
  EXPECT_EQ(answers.answers[1].best, 2u);
  EXPECT_THAT(answers.answers[1].others, IsEmpty());
}

TEST(Analyse, NamesTheCheapestThatMeetsTheTargets) {
  // Batch 8 is cheapest and misses p99; batch 4 meets it; batch 1 is dearer.
  const auto measure = [](const Trial& trial) {
    const double rates[] = {100, 200, 300}, p99[] = {10, 20, 90};
    const double noise = 1 + 0.01 * (trial.block % 3);
    return Json{{kRate, rates[trial.configuration] * noise},
                {"response_ms", {{"p99", p99[trial.configuration] * noise}}}};
  };
  const std::string yaml =
      "study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 4, 8]}\nrepeats: 5\n"
      "targets: {p99_ms: 50, price_per_hour: {in-process: 3.6}}\n";
  const Case made = Make(yaml, measure);
  const Answers answers = made.Analyse().answers;
  ASSERT_THAT(answers.answers, SizeIs(1));
  EXPECT_EQ(answers.answers[0].best, 1u);
  EXPECT_EQ(answers.answers[0].ranked_by, "price_per_million_images");
  ASSERT_THAT(answers.answers[0].others, SizeIs(1));
  EXPECT_EQ(answers.answers[0].others[0].configuration, 0u);
  EXPECT_NEAR(answers.answers[0].others[0].ratio.ratio, 2, 1e-12);  // twice the price of an image
  Case strict = Make(yaml, measure);
  strict.study.targets.p99_ms = 5;
  EXPECT_EQ(strict.Analyse().answers.none, "no configuration meets the targets");
}

// Constants by Python's statistics and the finite sum of t with 4 degrees of freedom. One test says all: the
// interval that is shown, its p-value, the finding and the smallest difference.
TEST(AdjustFamily, FindsByTheIntervalThatIsSimultaneousWithTheOthers) {
  const std::vector<double> logs{0.02, 0.05, 0.03, 0.06, 0.04};
  const auto in_family_of = [&](size_t count) {
    std::vector<Tested> tests(count, *TestLogs(logs, {}));
    tests.push_back(Tested{.ratio = {.n = 1, .ratio = 3}});  // tests nothing
    std::vector<Tested*> family;
    for (Tested& one : tests) family.push_back(&one);
    AdjustFamily(family, {});
    EXPECT_EQ(tests.back().told, Told::kTooFew);
    return tests.front();
  };
  const Tested alone = in_family_of(1), three = in_family_of(3), twelve = in_family_of(12);
  EXPECT_NEAR(*alone.ratio.low, 1.0205764027122832, 1e-9);
  EXPECT_NEAR(*alone.smallest_difference, 0.026634581403144175, 1e-9);
  EXPECT_EQ(alone.told, Told::kHigher);
  EXPECT_NEAR(*three.ratio.low, 1.0120652146998321, 1e-9);
  EXPECT_NEAR(*three.ratio.high, 1.0703727901529054, 1e-9);
  EXPECT_NEAR(three.adjusted_p, 0.01443803499013252, 1e-9);
  EXPECT_NEAR(*three.smallest_difference, 0.03526829375240012, 1e-9);
  EXPECT_EQ(three.told, Told::kHigher);
  EXPECT_NEAR(*twelve.ratio.low, 0.9983859127155004, 1e-9);
  EXPECT_NEAR(twelve.adjusted_p, 0.05775213996053008, 1e-9);
  EXPECT_EQ(twelve.told, Told::kNothing);
  EXPECT_NEAR(*twelve.limit, 1.0850384143828076 - 1, 1e-9);
  EXPECT_FALSE(three.limit);
}

TEST(TestLogs, NamesAGainAboveTheMarginAlone) {
  const auto tell = [](double log) {
    return TestLogs(std::vector{log, log + 0.001, log - 0.001, log + 0.002, log - 0.002}, {})->told;
  };
  EXPECT_EQ(tell(0.1), Told::kHigher);
  EXPECT_EQ(tell(-0.1), Told::kLower);
  EXPECT_EQ(tell(0.02), Told::kSmall);
  EXPECT_EQ(tell(0.0005), Told::kNothing);
  EXPECT_EQ(TestLogs(std::vector{0.7}, {})->told, Told::kTooFew);
}

TEST(AdjustFamily, ThatLeavesMoreOpenThanNumbersSayHasTooFewBlocks) {
  std::vector<Tested> tests(2000, *TestLogs(std::vector{0.0, 3.0}, {}));
  std::vector<Tested*> family;
  for (Tested& one : tests) family.push_back(&one);
  AdjustFamily(family, {});
  EXPECT_EQ(tests[0].told, Told::kTooFew);
  EXPECT_FALSE(tests[0].ratio.high);
  EXPECT_FALSE(tests[0].smallest_difference);
}

// 2 x 2: a factor 1.5 by the mode and 1.2 by the batch, times noise; constants from Python as above.
TEST(FindEffects, AveragesOverAllThatDiffersInOneFactorAlone) {
  const double noise[2][2][5] = {{{1, 1.01, .99, 1.02, .98}, {1.01, 1, 1, .99, 1.02}},
                                 {{.99, 1.01, 1, 1.01, 1}, {1, 1, 1.02, .98, 1.01}}};
  const Case made = Make(
      "study: s\nmodel: m\ndata: d\nfactors: {mode: [sync, async], batch: [1, 8]}\nrepeats: 5\n",
      [&](const Trial& trial) {
        // In the order of Factors(): mode first, batch fastest.
        const size_t mode = trial.configuration / 2, batch = trial.configuration % 2;
        return Json{{kRate, 100 * (1 + .5 * static_cast<double>(mode)) *
                                (1 + .2 * static_cast<double>(batch)) * noise[mode][batch][trial.block]}};
      });
  const std::vector<Effect> effects = made.Analyse().effects;
  ASSERT_THAT(effects, SizeIs(2));
  EXPECT_EQ(effects[0].factor, "mode");
  EXPECT_EQ(effects[0].to, "async");
  EXPECT_EQ(effects[0].pairs, 2);
  EXPECT_EQ(effects[0].ratio.n, 5);
  EXPECT_NEAR(effects[0].ratio.ratio, 1.5000297062057224, 1e-9);
  EXPECT_NEAR(*effects[0].ratio.low, 1.4753739601860993, 1e-9);
  EXPECT_NEAR(*effects[0].ratio.high, 1.5250974872945475, 1e-9);
  EXPECT_EQ(effects[0].told, Told::kHigher);
}

TEST(FindEffects, StepsFromOneProcessToAServerWhateverItsProtocol) {
  const Case made = Make(
      "study: s\nmodel: m\ndata: d\nfactors: {architecture: [in-process, microservice], protocol: [http, "
      "grpc]}\nrepeats: 3\n",
      [](const Trial& trial) {
        return Json{{kRate, trial.configuration == 0 ? 100.0 : trial.configuration == 1 ? 50.0 : 200.0}};
      });
  ASSERT_THAT(made.design.configurations, SizeIs(3));
  const std::vector<Effect> effects = made.Analyse().effects;
  ASSERT_THAT(effects, SizeIs(2));
  EXPECT_EQ(effects[0].factor, "architecture");
  EXPECT_EQ(effects[0].pairs, 2);
  EXPECT_NEAR(effects[0].ratio.ratio, 1, 1e-12);  // sqrt(1/2 * 2)
  EXPECT_EQ(effects[1].factor, "protocol");
  EXPECT_EQ(effects[1].pairs, 1);
  EXPECT_NEAR(effects[1].ratio.ratio, 4, 1e-12);
}

TEST(FindEffects, LeaveOutBlocksInWhichAPairLacks) {
  Case made =
      Make("study: s\nmodel: m\ndata: d\nfactors: {mode: [sync, async], batch: [1, 8]}\nrepeats: 5\n",
           [](const Trial& trial) { return Json{{kRate, trial.configuration >= 2 ? 150.0 : 100.0}}; });
  made.Find(0, 3).record.verdict.standing = Standing::kInvalid;
  EXPECT_EQ(made.Analyse().effects[0].ratio.n, 4);
}

TEST(Analyse, OfNothingSaysNothing) {
  Case two = Two();
  two.played.clear();
  const Analysis analysis = two.Analyse();
  EXPECT_THAT(analysis.answers.answers, IsEmpty());
  EXPECT_EQ(analysis.answers.none, "no trial was played");
  EXPECT_THAT(analysis.comparisons, IsEmpty());
  EXPECT_EQ(analysis.drift.blocks, 0);
  EXPECT_THAT(two.Result().figures, SizeIs(0));
}

TEST(DrawFigures, DrawsALineForEachCombinationOfTheOthers) {
  const Case made = Make(
      "study: s\nmodel: m\ndata: d\nfactors: {mode: [sync, async], batch: [8, 1, 32]}\nrepeats: 3\n",
      [](const Trial& trial) { return Json{{kRate, 100.0 + static_cast<double>(trial.configuration)}}; });
  const auto charts =
      DrawFigures(made.study, made.design, made.Analyse(), Measured(made.design, made.played));
  ASSERT_THAT(charts, SizeIs(2));
  EXPECT_EQ(charts[0].x, "batch");
  ASSERT_THAT(charts[0].series, SizeIs(2));
  EXPECT_EQ(charts[0].series[0].name, "sync");
  ASSERT_THAT(charts[0].series[0].points, SizeIs(3));
  EXPECT_EQ(charts[0].series[0].points[0].x, 1);
  EXPECT_EQ(charts[0].series[0].points[0].mean, 101);
  EXPECT_EQ(charts[1].x, "");
  ASSERT_THAT(charts[1].series, SizeIs(1));
  EXPECT_THAT(charts[1].series[0].points, SizeIs(6));
}

TEST(DrawFigures, TellsLinesApartWhereTheWantedSeriesDoNot) {
  const Case made = Make(
      "study: s\nmodel: m\ndata: d\nfactors: {architecture: [microservice, distributed], mode: [sync, "
      "async], batch: [1, 8]}\nrepeats: 1\n"
      "figures:\n  - {title: F, x: batch, series: architecture}\n  - {title: G, x: batch, series: "
      "architecture, where: {mode: async}}\n",
      [](const Trial&) { return Json{{kRate, 100.0}}; });
  const auto charts =
      DrawFigures(made.study, made.design, made.Analyse(), Measured(made.design, made.played));
  ASSERT_THAT(charts, SizeIs(2));
  EXPECT_THAT(charts[0].series, SizeIs(4));
  ASSERT_THAT(charts[1].series, SizeIs(2));
  EXPECT_EQ(charts[1].series[0].name, "microservice");
}

TEST(MakeResult, HoldsEveryTryWithItsVerdict) {
  Case two = Two();
  two.Find(1, 0).record.verdict = {.standing = Standing::kFailed, .message = "fell"};
  PlayedTrials again = two.Find(1, 0);
  again.attempt = 2;
  again.record.verdict = {};
  two.played.push_back(again);
  const results::StudyResult result = two.Result();
  ASSERT_THAT(result.rows, SizeIs(26));
  EXPECT_EQ(result.rows[25].attempt, 2);
  EXPECT_TRUE(result.rows[25].counts);
  int counting = 0;
  for (const results::StudyResult::Row& row : result.rows) counting += row.counts;
  EXPECT_EQ(counting, 25);
  EXPECT_EQ(result.rows[0].metrics["stages_ms.infer"], 200.0);
  EXPECT_EQ(result.trials.planned, 25);
  EXPECT_EQ(result.trials.retried, 1);
  const results::Figures* rate = result.FindFigures(0, kRate);
  ASSERT_NE(rate, nullptr);
  EXPECT_NEAR(rate->low.value_or(0), 98.69796394744817, 1e-9);
  EXPECT_EQ(result.configurations[1].design.levels["batch"], "8");
  EXPECT_FALSE(rate->median_low);
}

TEST(MakeResult, ComesBackFromItsJson) {
  Case two = Two();
  two.Find(1, 0).record.verdict = {.standing = Standing::kFailed, .message = "fell"};
  results::StudyResult result = two.Result();
  result.compared = results::StudyResult::Compared{.metric = kRate, .configurations = {{.label = "batch 8"}}};
  const auto read = results::StudyResult::FromJson(result.ToJson());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, result);
  Json other = result.ToJson();
  other["schema_version"] = 99;
  EXPECT_EQ(results::StudyResult::FromJson(other).error().code, ErrorCode::kUnsupported);
  const results::StudyDesign design = MakeDesignResult(two.design);
  EXPECT_EQ(results::StudyDesign::FromJson(design.ToJson()).value(), design);
}

TEST(CompareStudies, HoldsTheSameConfigurationsBesideEachOther) {
  const Case before = Two();
  Case now =
      Make("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 32]}\nrepeats: 5\n",
           [](const Trial& trial) { return Json{{kRate, 2 * kOne[static_cast<size_t>(trial.block)]}}; });
  const StudyJournal then{.header = {.study = before.study.ToJson(), .provenance = {{"host", "a"}}},
                          .played = before.played};
  const StudyJournal here{.header = {.study = now.study.ToJson(), .provenance = {{"host", "b"}}},
                          .played = now.played};
  const auto compared = CompareStudies({.study = before.study, .design = before.design, .journal = then},
                                       {.study = now.study, .design = now.design, .journal = here});
  ASSERT_THAT(compared.configurations, SizeIs(1));
  EXPECT_NEAR(compared.configurations[0].tested.value().ratio.ratio, 2, 1e-12);
  EXPECT_NEAR(compared.configurations[0].before.value().mean, 100.1, 1e-9);
  EXPECT_EQ(compared.configurations[0].tested->told, "higher");
  EXPECT_THAT(compared.only_before, testing::ElementsAre("batch 8"));
  EXPECT_THAT(compared.only_now, testing::ElementsAre("batch 32"));
  EXPECT_EQ(compared.differences[0], "host: a before, b now");
}

TEST(FindTargets, HoldsAnIntervalAgainstATargetAndCountsTheCost) {
  Case two = Make(kTwo, [](const Trial& trial) {
    return Json{{kRate, 490 + 5.0 * trial.block}, {"response_ms", {{"p99", 46 + 2.0 * trial.block}}}};
  });
  const Measured measured(two.design, two.played);
  const Configuration configuration{.factors = {{"architecture", "distributed"}}};
  const Targets targets{.p99_ms = 50, .images_per_s = 480, .price_per_hour = {{"distributed", 1.8}}};
  const auto found = FindTargets(targets, configuration, 0, measured, {});
  EXPECT_EQ(found.p99_ms.value().verdict, "undecided");
  EXPECT_EQ(found.images_per_s.value().verdict, "met");
  EXPECT_NEAR(found.price_per_million_images.value_or(0), 1.0,
              1e-12);  // 1.8 an hour, 1.8 million an hour
  EXPECT_LT(found.price_interval.value().low, 1.0);
  EXPECT_GT(found.price_interval->high.value(), 1.0);
  // Rates so far apart that the interval of their mean begins below 0: no price is the highest.
  Case wild = Two();
  for (PlayedTrials& one : wild.played) one.record.metrics[kRate] = one.trial.block == 0 ? 4000.0 : 40.0;
  const auto open = FindTargets(targets, configuration, 0, Measured(wild.design, wild.played), {});
  EXPECT_GT(open.price_interval.value().low, 0);
  EXPECT_FALSE(open.price_interval->high);
  EXPECT_EQ(FindTargets({.p99_ms = 40}, configuration, 0, measured, {}).p99_ms.value().verdict, "missed");
  EXPECT_EQ(
      FindTargets({.p99_ms = 40}, configuration, 0, Measured(two.design, {}), {}).p99_ms.value().verdict,
      "not measured");
  EXPECT_EQ(FindTargets({}, configuration, 0, measured, {}), results::StudyResult::Targets{});
}

}  // namespace
}  // namespace weir::study
