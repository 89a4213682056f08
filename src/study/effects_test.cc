#include "study/effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/seed.h"
#include "study/analysis.h"

namespace weir::study {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kRate = "throughput_images_per_s";

struct Simulated {
  StudyFile study;
  Design design;
  std::vector<PlayedTrials> played;
  Analysis Analyse() const { return study::Analyse(study, design, played); }
};

// Plays a study with rates of 100 times `factor`, a coefficient of variation `cv`, and a block's own shift.
Simulated Simulate(const std::string& yaml, uint64_t seed, double cv,
                   const std::function<double(const Json& factors, const Trial& trial)>& factor) {
  Simulated made{.study = ParseStudy(yaml).value(), .design = {}, .played = {}};
  made.design = MakeDesign(made.study).value();
  Random random = Seed(seed).Stream("noise").MakeRandom();
  std::vector<double> shift;
  for (int block = 0; block < made.design.blocks; ++block) shift.push_back(0.05 * random.Normal());
  for (const Trial& trial : made.design.trials) {
    PlayedTrials played{.trial = trial};
    const Json& factors = made.design.configurations[trial.configuration].factors;
    played.record.metrics = {
        {kRate, 100 * factor(factors, trial) *
                    std::exp(shift[static_cast<size_t>(trial.block)] + cv * random.Normal())}};
    made.played.push_back(std::move(played));
  }
  return made;
}

constexpr const char* kCrossed =
    "study: s\nmodel: m\ndata: d\nfactors: {mode: [sync, async], batch: [1, 4]}\nrepeats: 10\n";

TEST(FindEffects, ReportsOppositeDirectionsLevelByLevel) {
  // Batch 4 is 1.5 times as fast in sync mode, and 0.6 times in async mode: the mean effect is near 1.
  const auto made = Simulate(kCrossed, 1, 0.01, [](const Json& factors, const Trial&) {
    if (factors["batch"] == 1) return 1.0;
    return factors["mode"] == "sync" ? 1.5 : 0.6;
  });
  const Analysis analysis = made.Analyse();
  ASSERT_THAT(analysis.effects, SizeIs(2));
  const Effect& batch = analysis.effects[1];
  EXPECT_EQ(batch.factor, "batch");
  EXPECT_EQ(batch.acts, Acts::kOpposite);
  EXPECT_EQ(batch.higher, 1);
  EXPECT_EQ(batch.lower, 1);
  ASSERT_THAT(batch.by_level, SizeIs(2));
  EXPECT_EQ(batch.by_level[0].other, "mode");
  for (const LevelEffect& one : batch.by_level) {
    EXPECT_NEAR(one.ratio.ratio, one.level == "sync" ? 1.5 : 0.6, 0.02);
    EXPECT_EQ(one.told, one.level == "sync" ? Told::kHigher : Told::kLower);
  }
  ASSERT_THAT(analysis.variance.Significant(0.05), SizeIs(1));
}

TEST(FindEffects, OfFactorsThatActAloneHasNoLevels) {
  const auto made = Simulate(kCrossed, 2, 0.01, [](const Json& factors, const Trial&) {
    return (factors["batch"] == 1 ? 1.0 : 1.3) * (factors["mode"] == "sync" ? 1.0 : 2.0);
  });
  const Analysis analysis = made.Analyse();
  for (const Effect& effect : analysis.effects) {
    EXPECT_EQ(effect.acts, Acts::kAlike);
    EXPECT_THAT(effect.by_level, IsEmpty());
    EXPECT_EQ(effect.higher, 2);
  }
}

TEST(FindEffects, OfAFactorThatDoesNothingShowsNoDifferenceInMostStudies) {
  int shown = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto made = Simulate("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 4]}\nrepeats: 10\n", seed,
                               0.02, [](const Json&, const Trial&) { return 1.0; });
    const Effect effect = made.Analyse().effects.at(0);
    shown += effect.told != Told::kNothing;
    if (effect.told == Told::kNothing) {
      EXPECT_TRUE(effect.limit.has_value());
    }
  }
  EXPECT_LE(shown, 70);
}

TEST(FindEffects, FindsASlowdownOfThreePercentInMostStudies) {
  int found = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto made =
        Simulate("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 4]}\nrepeats: 20\n", seed, 0.02,
                 [](const Json& factors, const Trial&) { return factors["batch"] == 1 ? 1.0 : 0.97; });
    const Effect effect = made.Analyse().effects.at(0);
    found += effect.told != Told::kNothing && effect.ratio.ratio < 1;
  }
  EXPECT_GE(found, 80);
}

TEST(CompareArchitectures, PairsThemAtEqualOtherLevels) {
  const auto made = Simulate(
      "study: s\nmodel: m\ndata: d\nfactors: {architecture: [in-process, microservice, distributed], "
      "protocol: [http, "
      "grpc]}\nrepeats: 6\n",
      3, 0.005, [](const Json& factors, const Trial&) {
        if (factors["architecture"] == "in-process") return 1.0;
        return (factors["architecture"] == "microservice" ? 0.8 : 0.5) *
               (factors["protocol"] == "grpc" ? 1.1 : 1.0);
      });
  const auto pairs = made.Analyse().architectures;
  ASSERT_THAT(pairs, SizeIs(6));  // three pairs of architectures, two protocols
  int checked = 0;
  for (const ArchitecturePair& one : pairs) {
    if (one.from != "microservice") continue;
    ++checked;
    EXPECT_EQ(one.to, "distributed");
    EXPECT_NEAR(one.ratio.ratio, 0.625, 0.01);
    EXPECT_EQ(one.told, Told::kLower);
    EXPECT_TRUE(one.at == "http" || one.at == "grpc") << one.at;
  }
  EXPECT_EQ(checked, 2);
}

TEST(FindOutlierTrials, FlagsAWildTrialWithItsEvidence) {
  auto made = Simulate(kCrossed, 4, 0.01, [](const Json&, const Trial&) { return 1.0; });
  for (PlayedTrials& one : made.played) {
    if (one.trial.is_reference() || one.trial.configuration != 2 || one.trial.block != 3) continue;
    one.record.metrics[kRate] = 60.0;
    one.record.verdict.Add(results::Standing::kSuspect, {results::Reason::kSteal, "the hypervisor took 9 %"});
  }
  const Analysis analysis = made.Analyse();
  ASSERT_THAT(analysis.outliers, SizeIs(1));
  EXPECT_EQ(analysis.outliers[0].configuration, 2u);
  EXPECT_EQ(analysis.outliers[0].block, 3);
  EXPECT_LT(analysis.outliers[0].ratio, 0.75);
  EXPECT_EQ(analysis.outliers[0].evidence, "steal: the hypervisor took 9 %");
  EXPECT_EQ(analysis.configurations[2].tally.suspect, 1);  // it still counts
}

// A block is `pace` times as fast as the one before it; blocks have no shift of their own.
StudyDrift SimulateDrift(const std::string& yaml, uint64_t seed, double pace) {
  auto made = Simulate(yaml, seed, 0.01, [](const Json&, const Trial&) { return 1.0; });
  Random random = Seed(seed).Stream("drift").MakeRandom();
  for (PlayedTrials& one : made.played)
    one.record.metrics = {{kRate, 100 * std::pow(pace, one.trial.block) * std::exp(0.01 * random.Normal())}};
  return made.Analyse().drift;
}

TEST(FindStudyDrift, FlagsAPlantedDriftAndStatesNoneThatIsNotShown) {
  const std::string yaml = "study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 4]}\nrepeats: 20\n";
  auto drifting =
      Simulate(yaml, 5, 0.01, [](const Json&, const Trial& trial) { return std::pow(0.99, trial.block); });
  const StudyDrift drift = drifting.Analyse().drift;
  EXPECT_TRUE(drift.flagged);
  // Half of a percent over 20 blocks with noise of 1 % in a trial is seen nearly always; no drift, hardly
  // ever.
  int planted = 0, still = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    planted += SimulateDrift(yaml, seed, 0.995).flagged;
    still += SimulateDrift(yaml, seed, 1).flagged;
  }
  EXPECT_GE(planted, 95);
  EXPECT_LE(still, 7);
  // Three blocks: the interval of a line through them is too wide for any statement.
  const auto few = Simulate("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 4]}\nrepeats: 3\n", 6, 0.02,
                            [](const Json&, const Trial&) { return 1.0; })
                       .Analyse()
                       .drift;
  EXPECT_FALSE(few.shown);
  EXPECT_TRUE(few.limit.has_value());
}

TEST(AnalyseObjective, IsNotHiddenByFactorsThatARuleTakesAway) {
  const auto made = Simulate(
      "study: s\nmodel: m\ndata: d\nfactors: {architecture: [in-process, microservice, distributed]}\nfixed: "
      "{protocol: grpc}\nnetwork: {rate_gbit_per_s: 5}\nrepeats: 6\n",
      9, 0.01,
      [](const Json& factors, const Trial&) { return factors["architecture"] == "distributed" ? 0.5 : 1.0; });
  const VarianceTable table = made.Analyse().variance;
  ASSERT_THAT(table.terms, SizeIs(2));
  EXPECT_EQ(table.terms[1].factors, std::vector<std::string>{"architecture"});
  EXPECT_EQ(table.terms[1].degrees, 2);
  EXPECT_LT(table.terms[1].adjusted_p, 1e-6);
}

TEST(AnalyseObjective, SaysWhatNotApplicableTakesAway) {
  const auto made = Simulate(
      "study: s\nmodel: m\ndata: d\nfactors: {architecture: [in-process, microservice, distributed], "
      "network: "
      "[1, 5]}\nrepeats: 6\n",
      3, 0.01, [](const Json& factors, const Trial&) {
        return factors.value("architecture", std::string()) == "in-process" ? 1.5 : 1.0;
      });
  const VarianceTable table = made.Analyse().variance;
  ASSERT_EQ(table.left_out, "");
  const auto architecture =
      std::ranges::find(table.aliased, std::vector<std::string>{"architecture"}, &AliasedTerm::factors);
  ASSERT_NE(architecture, table.aliased.end());
  EXPECT_EQ(architecture->degrees, 1);
  EXPECT_EQ(architecture->own_degrees, 2);
  EXPECT_EQ(architecture->with, std::vector<std::string>{"network"});
  EXPECT_EQ(architecture->not_applicable, std::vector<std::string>{"network"});
  const auto crossed = Simulate(
      "study: s\nmodel: m\ndata: d\nfactors: {mode: [sync, async], batch: [1, 4]}\n"
      "repeats: 3\n",
      3, 0.01, [](const Json&, const Trial&) { return 1.0; });
  EXPECT_TRUE(crossed.Analyse().variance.aliased.empty());
}

TEST(AnalyseObjective, SaysWhyThereIsNoTable) {
  const auto one = Simulate("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 4]}\nrepeats: 1\n", 7, 0.01,
                            [](const Json&, const Trial&) { return 1.0; });
  EXPECT_EQ(one.Analyse().variance.left_out, "one block alone does not tell the trials' spread");
  const auto same = Simulate("study: s\nmodel: m\ndata: d\nfactors: {batch: [4]}\nrepeats: 4\n", 7, 0.01,
                             [](const Json&, const Trial&) { return 1.0; });
  EXPECT_EQ(same.Analyse().variance.left_out, "no factor varies among the trials that count");
}

TEST(FindNextBottleneck, NamesTheSecondAndTheGainBeforeIt) {
  auto made = Simulate("study: s\nmodel: m\ndata: d\nfactors: {mode: [async, sync]}\nrepeats: 4\n", 8, 0,
                       [](const Json&, const Trial&) { return 1.0; });
  for (PlayedTrials& one : made.played) {
    one.record.metrics = {
        {kRate, 90.0},
        {"bottleneck", "decode"},
        {"bottleneck_next", "infer"},
        {"bottleneck_next_images_per_s", 270.0},
        {"bound_images_per_s", {{"decode", 100.0}, {"infer", 270.0}, {"cpu", 900.0}, {"pipeline", 100.0}}}};
  }
  const Analysis analysis = made.Analyse();
  const NextBottleneck& async = *analysis.configurations[0].bottleneck;
  EXPECT_EQ(async.stage, "decode");
  EXPECT_EQ(async.times, 4);
  EXPECT_NEAR(*async.bound, 100, 1e-12);
  EXPECT_EQ(async.next, "infer");
  EXPECT_NEAR(async.gain->ratio, 3, 1e-12);  // 270 / 90
  EXPECT_EQ(async.contradiction, "");
}

TEST(FindNextBottleneck, TellsNoGainWhereATrialDoesNotKnowTheNextAndReportsAContradiction) {
  auto made = Simulate("study: s\nmodel: m\ndata: d\nfactors: {mode: [async]}\nrepeats: 4\n", 8, 0,
                       [](const Json&, const Trial&) { return 1.0; });
  for (PlayedTrials& one : made.played) {
    one.record.metrics = {{kRate, 90.0}, {"bottleneck", "network"}, {"bottleneck_next_images_per_s", 270.0}};
    if (one.trial.block == 2) {
      one.record.metrics.erase("bottleneck_next_images_per_s");
      one.record.metrics["bottleneck_contradiction"] = "network is named, but infer holds back";
    }
  }
  const Analysis analysis = made.Analyse();
  const NextBottleneck& found = *analysis.configurations[0].bottleneck;
  EXPECT_FALSE(found.gain);
  EXPECT_EQ(found.next, "");
  EXPECT_EQ(found.contradiction, "network is named, but infer holds back");
}

}  // namespace
}  // namespace weir::study
