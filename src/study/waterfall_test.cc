#include "study/waterfall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/seed.h"
#include "study/analysis.h"
#include "study/result.h"

namespace weir::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kRate = "throughput_images_per_s";
constexpr const char* kFull =
    "study: s\nmodel: m\ndata: d\nfactors: {architecture: [in-process, microservice, distributed], batch: "
    "[8, 32]}\n"
    "fixed: {mode: async, in_flight: 4, data_path: files, protocol: grpc}\n"
    "network: {rate_gbit_per_s: 5}\nrepeats: 8\nwaterfall: true\n";

std::vector<std::string> NamesOf(const std::string& yaml) {
  std::vector<std::string> names;
  const auto combinations = WaterfallCombinations(ParseStudy(yaml).value());
  EXPECT_TRUE(combinations) << combinations.error().message;
  for (const WaterfallCombination& one : combinations.value()) names.push_back(one.name);
  return names;
}

TEST(WaterfallCombinations, AddOneFactorAtATime) {
  EXPECT_THAT(NamesOf(kFull), ElementsAre("the model, tensors in memory, in one process", "files", "decode",
                                          "inter-process calls", "serialisation and copies", "another node",
                                          "network", "batching", "waiting and overlap"));
  EXPECT_THAT(
      NamesOf(
          "study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nfixed: {data_path: memory, mode: sync}\n"
          "waterfall: {batch: 8}\n"),
      ElementsAre("the model, tensors in memory, in one process", "batching"));
  EXPECT_THAT(NamesOf("study: s\nmodel: m\nfixed: {load: closed, architecture: microservice, in_flight: 4}\n"
                      "factors: {batch: [8]}\nwaterfall: true\n"),
              ElementsAre("the model, tensors in memory, in one process", "inter-process calls",
                          "serialisation and copies", "batching", "waiting and overlap"));
  const auto rate = WaterfallCombinations(
      ParseStudy(
          "study: s\nmodel: m\nfixed: {load: {rate_per_s: 100}}\nfactors: {batch: [8]}\nwaterfall: true\n")
          .value());
  ASSERT_FALSE(rate);
  EXPECT_THAT(rate.error().message, HasSubstr("wants load: application or closed"));
}

TEST(MakeDesign, PlaysTheStepsOfAWaterfallBesideTheConfigurations) {
  const Design design = MakeDesign(ParseStudy(kFull).value()).value();
  ASSERT_THAT(design.waterfall, SizeIs(9));
  // Its end is a configuration of the study itself; the others are its own.
  const Configuration& last = design.configurations[design.waterfall.back().configuration];
  EXPECT_FALSE(last.waterfall_only);
  EXPECT_EQ(last.factors["architecture"], "distributed");
  EXPECT_EQ(last.factors["batch"], 8);
  int own = 0;
  for (const Configuration& one : design.configurations) own += one.waterfall_only;
  EXPECT_EQ(own, 8);
  EXPECT_THAT(design.waterfall[1].change, HasSubstr("data path memory to files-at-model-size"));
  const Design plain =
      MakeDesign(ParseStudy("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\n").value()).value();
  EXPECT_THAT(plain.waterfall, SizeIs(0));
}

struct Simulated {
  StudyFile study;
  Design design;
  std::vector<PlayedTrials> played;
};

// Every step has a time of its own in milliseconds, and all trials 1 % of noise.
Simulated Simulate(uint64_t seed, const std::map<std::string, double>& delays) {
  Simulated made{.study = ParseStudy(kFull).value(), .design = {}, .played = {}};
  made.design = MakeDesign(made.study).value();
  Random random = Seed(seed).Stream("noise").MakeRandom();
  std::map<size_t, double> times;
  double sum = 1;
  for (const PlannedStep& one : made.design.waterfall) {
    const auto delay = delays.find(one.name);
    sum += delay == delays.end() ? 0 : delay->second;
    times[one.configuration] = sum;
  }
  for (const Trial& trial : made.design.trials) {
    PlayedTrials played{.trial = trial};
    const auto time = times.find(trial.configuration);
    played.record.metrics = {
        {kRate, 1000 / ((time == times.end() ? 2.0 : time->second) * (1 + 0.01 * random.Normal()))}};
    made.played.push_back(std::move(played));
  }
  return made;
}

TEST(FindWaterfall, SumsToTheWholeAndMovesTheStepThatWasDelayed) {
  for (const char* delayed : {"decode", "network", "batching"}) {
    const Simulated made = Simulate(3, {{delayed, 0.5}});
    const auto waterfall = FindWaterfall(made.design, Measured(made.design, made.played), {});
    ASSERT_TRUE(waterfall);
    ASSERT_THAT(waterfall->steps, SizeIs(9));
    double sum = 0;
    for (size_t i = 1; i < waterfall->steps.size(); ++i) {
      const WaterfallStep& one = waterfall->steps[i];
      sum += one.step->mean;
      EXPECT_EQ(one.blocks, 8);
      EXPECT_EQ(one.adjusted_p <= 0.05, one.name == delayed) << delayed << " " << one.name;
      if (one.name == delayed) {
        EXPECT_NEAR(one.step->mean, 0.5, 0.05);
      }
    }
    EXPECT_NEAR(sum, waterfall->added->mean, 1e-9);
  }
}

TEST(FindWaterfall, PutsTheEventsOfADeviceBeforeTheFirstStep) {
  Simulated made = Simulate(3, {});
  for (PlayedTrials& played : made.played) {
    if (played.trial.configuration != made.design.waterfall.front().configuration) continue;
    played.record.metrics["images"] = 10;
    played.record.metrics["stages_ms"]["device"] = {
        {"host_to_device", 2.0}, {"computation", 5.0}, {"device_to_host", 1.0}};
  }
  const auto plain = FindWaterfall(made.design, Measured(made.design, Simulate(3, {}).played), {});
  const auto waterfall = FindWaterfall(made.design, Measured(made.design, made.played), {});
  ASSERT_THAT(waterfall->steps, SizeIs(12));
  EXPECT_EQ(waterfall->steps[0].name, "computation on the device");
  EXPECT_NEAR(waterfall->steps[0].step->mean, 0.5, 1e-9);
  EXPECT_NEAR(waterfall->steps[1].total, 0.7, 1e-9);
  EXPECT_NEAR(waterfall->steps[2].total, 0.8, 1e-9);
  EXPECT_TRUE(waterfall->steps[2].by_events);
  EXPECT_FALSE(waterfall->steps[3].by_events);
  EXPECT_NEAR(waterfall->steps[3].step->mean, plain->steps[0].total - 0.8, 1e-9);
  EXPECT_NEAR(waterfall->steps[3].total, plain->steps[0].total, 1e-9);
  EXPECT_NEAR(waterfall->added->mean, plain->added->mean, 1e-9);
  // The whole time has an interval of its own, and is no sum of the steps' intervals.
  const WaterfallStep& last = waterfall->steps.back();
  ASSERT_TRUE(last.whole && last.whole->low);
  EXPECT_NEAR(last.whole->mean, last.total, 1e-12);
  EXPECT_LT(*last.whole->low, last.total);
}

TEST(FindWaterfall, IsNoPartOfEffectsAndRanking) {
  // The steps of the waterfall are all faster than the study's own configurations.
  const Simulated made = Simulate(4, {{"waiting and overlap", 5}});
  const Analysis analysis = Analyse(made.study, made.design, made.played);
  ASSERT_THAT(analysis.answers.answers, SizeIs(1));
  const Answer& answer = analysis.answers.answers[0];
  EXPECT_FALSE(made.design.configurations[answer.best].waterfall_only);
  for (const Comparison& one : answer.others)
    EXPECT_FALSE(made.design.configurations[one.configuration].waterfall_only);
  for (const VarianceTerm& term : analysis.variance.terms) {
    for (const std::string& factor : term.factors) EXPECT_NE(factor, "data_path");
  }
}

TEST(FindWaterfall, GivesAStepThatWasNotPlayedToTheNextOne) {
  Simulated made = Simulate(5, {{"inter-process calls", 0.5}});
  const auto skip = [&made](size_t step) {
    for (PlayedTrials& one : made.played) {
      if (one.trial.configuration == made.design.waterfall[step].configuration)
        one.record.verdict.standing = results::Standing::kSkipped;
    }
  };
  skip(3);
  const auto waterfall = FindWaterfall(made.design, Measured(made.design, made.played), {});
  ASSERT_TRUE(waterfall);
  ASSERT_THAT(waterfall->steps, SizeIs(8));
  EXPECT_EQ(waterfall->steps[3].name, "inter-process calls + serialisation and copies");
  EXPECT_NEAR(waterfall->steps[3].step->mean, 0.5, 0.05);
  EXPECT_THAT(waterfall->missing, ElementsAre("inter-process calls"));
  for (size_t step = 1; step < 9; ++step) skip(step);
  EXPECT_EQ(FindWaterfall(made.design, Measured(made.design, made.played), {})->left_out,
            "fewer than two of its steps have a trial that counts");
}

}  // namespace
}  // namespace weir::study
