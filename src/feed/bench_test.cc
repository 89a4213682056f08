#include "feed/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::feed {
namespace {

using ::testing::HasSubstr;

TEST(Step, IsReadWithItsUnit) {
  EXPECT_EQ(*ParseStep("3.5ms"), 3500us);
  EXPECT_EQ(*ParseStep("800us"), 800us);
  EXPECT_EQ(*ParseStep("1s"), 1s);
  for (const char* text : {"", "3", "ms", "-1ms", "3 ms", "3h", "nanms", "4000s", "1e99s"})
    EXPECT_FALSE(ParseStep(text)) << text;
}

BenchFigures Steady() {
  BenchFigures figures;
  figures.wall_s = 10;
  figures.counters.batches = 400;
  figures.counters.rows = 400 * 64;
  figures.counters.read = 1s;
  figures.counters.decode = 16s;
  figures.counters.augment = 2s;
  figures.rates.assign(12, 2560);
  return figures;
}

TEST(FeedBottleneck, IsTheLongestStageOfTheThreads) {
  const auto found = FindFeedBottleneck(Steady(), 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stage, "decode");
  EXPECT_NEAR(found->share, 16.0 / 19, 1e-9);
  EXPECT_NEAR(found->gain, 1 / (1 - 8.0 / 19), 1e-9);
}

TEST(FeedBottleneck, IsTheTrainerWhereItNeverWaits) {
  BenchFigures figures = Steady();
  figures.counters.decode = 2s;
  figures.step_s = 9.9;
  const auto found = FindFeedBottleneck(figures, 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stage, "trainer");
  EXPECT_DOUBLE_EQ(found->gain, 2);
}

TEST(FeedBottleneck, OfNothingIsNone) { EXPECT_FALSE(FindFeedBottleneck({}, 2)); }

TEST(FeedVerdict, IsValidForASteadyRun) {
  EXPECT_EQ(JudgeBench(Steady(), {.cpus = 2, .steal_percent = 0.1, .foreign_cpu = 0.05}).standing,
            results::Standing::kValid);
}

TEST(FeedVerdict, NamesWhatSpoiledTheRun) {
  const auto evidence = [](const BenchFigures& figures, const BenchEnvironment& around = {}) {
    const results::Verdict verdict = JudgeBench(figures, around);
    return verdict.causes.empty() ? std::string("none") : verdict.causes.front().evidence;
  };
  BenchFigures figures = Steady();
  figures.counters.batches = 5;
  EXPECT_THAT(evidence(figures), HasSubstr("5 batches"));
  figures = Steady();
  figures.counters.bad["damaged"] = 1000;
  EXPECT_THAT(evidence(figures), HasSubstr("1000 of 26600"));
  figures = Steady();
  for (size_t i = 8; i < 12; ++i) figures.rates[i] = 2000;
  EXPECT_THAT(evidence(figures), HasSubstr("last third"));
  EXPECT_THAT(evidence(Steady(), {.cpus = 2, .foreign_cpu = 0.5}), HasSubstr("others used 0.5"));
  EXPECT_THAT(evidence(Steady(), {.steal_percent = 5}), HasSubstr("steal"));
  EXPECT_THAT(evidence(Steady(), {.throttled_s = 1}), HasSubstr("held back"));
  figures.counters.batches = 0;
  EXPECT_EQ(JudgeBench(figures, {}).standing, results::Standing::kInvalid);
}

}  // namespace
}  // namespace weir::feed
