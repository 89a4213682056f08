#include "study/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/seed.h"
#include "study/study_file.h"

namespace weir::study {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kPhases =
    "study: s\nmodel: m\ndata: d\nfactors: {beside: [none, prepare+feed], limits: [none, {serve: 1, feed: "
    "0.5}]}\n"
    "fixed: {architecture: distributed, load: closed, in_flight: 4, batch: 1}\n"
    "also: [{load: [{rate_per_s: 1}], beside: [feed, prepare]}]\nrepeats: 8\n";

struct Simulated {
  Design design;
  std::vector<PlayedTrials> played;
};

// Together, serve keeps `serve` of its 1,000 images/s without limits, and `limited` with them. The feed keeps
// half, preparation all.
Simulated Simulate(double serve, double limited) {
  Simulated made{.design = MakeDesign(ParseStudy(kPhases).value()).value(), .played = {}};
  Random random = Seed(7).Stream("noise").MakeRandom();
  const auto noisy = [&random](double value) { return value * (1 + 0.01 * random.Normal()); };
  for (const Trial& trial : made.design.trials) {
    const Json& factors = made.design.configurations[trial.configuration].factors;
    const std::string beside = factors.value("beside", std::string("none"));
    const bool is_limited = factors.value("limits", Json("none")).is_object();
    const bool all = beside == "prepare+feed";
    double rate = all ? 1000 * (is_limited ? limited : serve) : 1000;
    if (factors["load"].is_object()) rate = 1;
    PlayedTrials played{.trial = trial};
    played.record.metrics = {{"throughput_images_per_s", noisy(rate)},
                             {"response_ms", {{"p99", noisy(4000 / rate)}}}};
    if (beside.contains("feed")) played.record.metrics["beside"]["feed"] = {{"per_s", noisy(all ? 50 : 100)}};
    if (beside.contains("prepare")) played.record.metrics["beside"]["prepare"] = {{"per_s", noisy(200)}};
    made.played.push_back(std::move(played));
  }
  return made;
}

std::optional<PhaseTable> TableOf(const Simulated& made) {
  return ComparePhases(made.design, Measured(made.design, made.played), {});
}

const PhaseKept& Find(const PhaseTable& table, const std::string& metric, const std::string& limits) {
  for (const PhaseKept& one : table.kept)
    if (one.metric == metric && one.limits == limits) return one;
  ADD_FAILURE() << "no " << metric << " under " << limits;
  return table.kept.front();
}

TEST(ComparePhases, HoldsEachPhaseBesideTheOthersAgainstItselfAlone) {
  const auto table = TableOf(Simulate(0.6, 0.95));
  ASSERT_TRUE(table);
  ASSERT_THAT(table->kept, SizeIs(8));
  EXPECT_NEAR(Find(*table, "throughput_images_per_s", "none").ratio.ratio, 0.6, 0.02);
  EXPECT_NEAR(Find(*table, "response_ms.p99", "none").ratio.ratio, 1 / 0.6, 0.05);
  EXPECT_NEAR(Find(*table, "beside.feed.per_s", "none").ratio.ratio, 0.5, 0.02);
  EXPECT_NEAR(Find(*table, "beside.feed.per_s", "none").alone, 100, 3) << "beside the idle server";
  EXPECT_EQ(Find(*table, "beside.prepare.per_s", "none").told, Told::kNothing);
  EXPECT_NEAR(Find(*table, "throughput_images_per_s", "serve 1.0, feed 0.5").ratio.ratio, 0.95, 0.02);
}

TEST(ComparePhases, RecommendsTheLimitsUnderWhichTheWorstOffKeepsMost) {
  const auto table = TableOf(Simulate(0.3, 0.9));
  ASSERT_TRUE(table);
  EXPECT_EQ(table->recommended, "serve 1.0, feed 0.5");
  EXPECT_NEAR(table->least_kept, 0.5, 0.02) << "the feed";
  const auto without = TableOf(Simulate(0.9, 0.3));
  EXPECT_EQ(without->recommended, "none");
}

TEST(ComparePhases, RecommendsNothingWhereTheLimitsMakeNoDifference) {
  const auto table = TableOf(Simulate(0.6, 0.6));
  ASSERT_TRUE(table);
  EXPECT_EQ(table->recommended, "");
  EXPECT_THAT(table->why_not, HasSubstr("no difference"));
}

TEST(ComparePhases, IsAbsentWithoutPhasesBesideTheClient) {
  const Design design =
      MakeDesign(ParseStudy("study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\n").value()).value();
  EXPECT_FALSE(ComparePhases(design, Measured(design, {}), {}));
}

}  // namespace
}  // namespace weir::study
