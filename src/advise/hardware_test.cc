#include "advise/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace weir::advise {
namespace {

using testing::HasSubstr;
using Hardware = results::AdviceResult::Hardware;

constexpr const char* kStudy =
    "study: s\nmodel: m\ndata: d\nfactors: {batch: [8, 16]}\nrepeats: 6\n"
    "fixed: {architecture: in-process, engine: onnxruntime}\n";

Accelerator Made(const std::string& name, double per_item_ms, double uncertainty, double price) {
  const auto engine = [&](double factor) {
    const double time = per_item_ms * factor;
    return Accelerator::Engine{
        .text = "emulated:per_item=" + std::to_string(time) + "ms", .base_ms = 0, .per_item_ms = time};
  };
  return {.name = name,
          .middle = engine(1),
          .fast = engine(1 / (1 + uncertainty)),
          .slow = engine(1 + uncertainty),
          .outside = {},
          .price_per_hour = price};
}

// A data path of 1,000 images/s: the pipeline runs at the slower of both. Batch 16 is a little better.
study::TrialFn Pipeline(const study::Design& design) {
  return [&design](const study::Trial& trial) -> Result<results::TrialResult> {
    const Json& factors = design.configurations[trial.configuration].factors;
    const auto engine = factors["accelerator"].get<std::string>();
    const double accelerator = 1000 / std::stod(engine.substr(engine.find('=') + 1));
    const double wobble = 1 + 0.002 * ((trial.block * 7 + int(trial.configuration) * 3) % 5 - 2);
    results::TrialResult result;
    const double path = factors["batch"] == 16 ? 1000 : 900;
    result.metrics = {{"throughput_images_per_s", std::min(path, accelerator) * wobble}};
    return result;
  };
}

struct Found {
  HardwareRun run;
  Decision decision;
  std::vector<Hardware> hardware;
};

Found Find(const std::vector<Accelerator>& accelerators, const Goal& goal) {
  const auto file = study::ParseStudy(kStudy);
  EXPECT_TRUE(file);
  const ManualClock clock;
  SearchTrials trials(clock);
  auto run = RunHardware({.file = *file,
                          .goal = goal,
                          .accelerators = accelerators,
                          .player = [](const auto&, const study::Design& design) { return Pipeline(design); },
                          .trials = trials});
  EXPECT_TRUE(run) << run.error().message;
  Found found{.run = *std::move(run)};
  found.decision = Decide(found.run.design, found.run.played, found.run.goal, found.run.ends);
  found.hardware = JudgeHardware(found.run, accelerators, found.decision);
  return found;
}

TEST(Hardware, SaysWhichAcceleratorTheDataPathFeedsAndWhichIsWorthItsPrice) {
  // 500, 950 and 5,000 images/s alone.
  const std::vector<Accelerator> all{Made("small", 2, 0.05, 1), Made("middle", 1 / 0.95, 0.05, 1.6),
                                     Made("large", 0.2, 0.05, 8)};
  const Found found = Find(all, {.objective = Objective::kCost});
  ASSERT_EQ(found.hardware.size(), 3u);
  EXPECT_EQ(found.hardware[0].feeding, Hardware::kFed);
  EXPECT_EQ(found.hardware[1].feeding, Hardware::kFed);
  EXPECT_EQ(found.hardware[2].feeding, Hardware::kNotFed);
  EXPECT_NEAR(found.hardware[2].fed_share->value, 0.2, 0.01);
  EXPECT_EQ(found.hardware[0].label.substr(0, 5), "small");
  EXPECT_EQ(found.decision.candidates.size(), 3u);  // the ends are none
  ASSERT_TRUE(found.decision.best) << found.decision.no_answer;
  const Candidate& best = found.decision.candidates[*found.decision.best];
  EXPECT_EQ(found.run.design.configurations[best.configuration].factors["accelerator"], all[1].middle.text);
  EXPECT_NEAR(found.hardware[1].cost_per_million_images->value, 1.6 / 3600 / 950 * 1e6, 0.01);
  const std::string text = HardwareText(found.hardware);
  EXPECT_THAT(text, HasSubstr("the data path does not feed it"));
  EXPECT_THAT(text, HasSubstr(" per million images"));
}

TEST(Hardware, HasBothUncertaintiesInTheInterval) {
  // An accelerator that holds back passes its uncertainty on. One that the data path holds back passes none
  // on.
  const Found found = Find({Made("slow", 2, 0.3, 1), Made("quick", 0.1, 0.3, 1)}, {});
  const Expected& slow = *found.hardware[0].throughput_images_per_s;
  EXPECT_LT(*slow.low, 500 / 1.29);
  EXPECT_GT(*slow.high, 500 * 1.29);
  const Expected& quick = *found.hardware[1].throughput_images_per_s;
  EXPECT_GT(*quick.low, 990);
  EXPECT_LT(*quick.high, 1010);
  // The share of the quick one is known no better than its own speed.
  EXPECT_LT(*found.hardware[1].fed_share->low, 0.1 / 1.25);
  EXPECT_GT(*found.hardware[1].fed_share->high, 0.1 * 1.25);
}

TEST(Hardware, ClaimsNoSignificanceThatThePredictionsDoNotSupport) {
  const std::vector<Accelerator> sure{Made("a", 2, 0.01, 1), Made("b", 1.8, 0.01, 1)};
  const std::vector<Accelerator> unsure{Made("a", 2, 0.4, 1), Made("b", 1.8, 0.4, 1)};
  EXPECT_TRUE(Find(sure, {}).decision.significant);
  EXPECT_FALSE(Find(unsure, {}).decision.significant);
}

TEST(Hardware, SaysUndecidedWhereTheThresholdLiesInTheInterval) {
  const Found found = Find({Made("near", 1 / 1.1, 0.2, 1)}, {});
  EXPECT_EQ(found.hardware[0].feeding, Hardware::kUndecided);
  EXPECT_THAT(HardwareText(found.hardware), HasSubstr("may or may not feed it"));
}

TEST(Hardware, RefusesAServerWithoutAPlaceForIt) {
  const auto file = study::ParseStudy(
      "study: s\nserver: {name: t, url: \"http://127.0.0.1:1\", model: m}\nfixed: {load: closed, batch: "
      "1}\n");
  ASSERT_TRUE(file) << file.error().message;
  const std::vector<Accelerator> one{Made("a", 2, 0.1, 1)};
  const ManualClock clock;
  SearchTrials trials(clock);
  const auto run = RunHardware({.file = *file,
                                .goal = {},
                                .accelerators = one,
                                .player = [](const auto&, const auto& design) { return Pipeline(design); },
                                .trials = trials});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("has no place for a predicted accelerator"));
}

}  // namespace
}  // namespace weir::advise
