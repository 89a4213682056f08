#include "load/session/level.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace weir::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<double> Range(const std::string& text) {
  const auto values = ParseRange(text);
  EXPECT_TRUE(values) << text << ": " << values.error().message;
  return values.value_or(std::vector<double>{});
}

TEST(ParseRange, TakesNumbersStepsDoublingsAndLists) {
  EXPECT_THAT(Range("8"), ElementsAre(8));
  EXPECT_THAT(Range("1:3"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Range("1:16:5"), ElementsAre(1, 6, 11, 16));
  EXPECT_THAT(Range("1:16:2x"), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(Range("0.5:1:0.25"), ElementsAre(0.5, 0.75, 1));
  EXPECT_THAT(Range("32,1,8"), ElementsAre(32, 1, 8));
}

TEST(ParseRange, RefusesWhatIsNoRange) {
  for (const char* text : {"", "x", "1:", "0", "4:1", "1:2:0", "1:2:3:4", "1,,2", "nan", "inf", "1:1e9", "-1",
                           "1:100000:1", "1,0"}) {
    const auto values = ParseRange(text);
    ASSERT_FALSE(values) << text;
    EXPECT_EQ(values.error().code, ErrorCode::kInvalidArgument) << text;
  }
}

TEST(ParseShapes, TakesADimensionListForEachName) {
  const auto shapes = ParseShapes({"IN:3,224,224", "a:b:1"});
  ASSERT_TRUE(shapes);
  EXPECT_THAT(*shapes,
              UnorderedElementsAre(Pair("IN", infer::Shape{3, 224, 224}), Pair("a:b", infer::Shape{1})));
  for (const char* text : {"IN", ":3", "IN:x", "IN:-1", "IN:1.5", "IN:"}) EXPECT_FALSE(ParseShapes({text}));
  EXPECT_FALSE(ParseShapes({"IN:1", "IN:2"})) << "twice the same name";
}

TEST(LevelsOf, AreOneInFlightUnlessAskedOtherwise) {
  const auto levels = LevelsOf({});
  ASSERT_TRUE(levels);
  ASSERT_EQ(levels->size(), 1U);
  EXPECT_EQ(std::get<Concurrency>(levels->front().scenario).in_flight, 1);
  EXPECT_EQ(levels->front().name, "concurrency 1");
}

TEST(LevelsOf, KeepTheDistributionAndTheWaitingThatWereAskedFor) {
  LoadOptions options;
  options.rate_range = "100:200:100";
  options.distribution = infer::Distribution::kGamma;
  options.variation = 3;
  options.most_in_flight = 77;
  const auto rates = LevelsOf(options);
  ASSERT_TRUE(rates && rates->size() == 2);
  const auto& rate = std::get<Rate>(rates->back().scenario);
  EXPECT_EQ(rate.per_second, 200);
  EXPECT_EQ(rate.most_in_flight, 77);
  EXPECT_EQ(rates->back().name, "gamma 200/s");
  EXPECT_EQ(MostInFlight(*rates), 77);
  LoadOptions sync;
  sync.concurrency_range = "2,9,4";
  sync.sync = true;
  const auto levels = LevelsOf(sync);
  ASSERT_TRUE(levels && levels->size() == 3);
  EXPECT_EQ(std::get<Concurrency>(levels->front().scenario).wait, Concurrency::Wait::kSync);
  EXPECT_EQ(MostInFlight(*levels), 9);
}

TEST(LevelsOf, RefuseHalfARequestInFlight) {
  LoadOptions options;
  options.concurrency_range = "1.5";
  EXPECT_FALSE(LevelsOf(options));
  options.concurrency_range = "65537";
  EXPECT_FALSE(LevelsOf(options));
}

TEST(LengthOf, IsTenSecondsOnceUnlessAskedOtherwise) {
  const LevelLength usual = LengthOf({});
  EXPECT_EQ(usual.length, 10s);
  EXPECT_EQ(usual.requests, 0);
  EXPECT_EQ(usual.repeats, 1);
  EXPECT_EQ(usual.note, "");
  LoadOptions options;
  options.duration_s = 2;
  options.repeats = 4;
  EXPECT_EQ(LengthOf(options).length, 2s);
  EXPECT_EQ(LengthOf(options).repeats, 4);
}

TEST(LengthOf, UnderstandsPerfAnalyzersWindows) {
  LoadOptions options;
  options.measurement_interval_ms = 5000;
  LevelLength length = LengthOf(options);
  EXPECT_EQ(length.length, 5s);
  EXPECT_EQ(length.repeats, 3);
  EXPECT_THAT(length.note, HasSubstr("fixed before the run"));
  options.max_trials = 2;
  EXPECT_EQ(LengthOf(options).repeats, 2);
  LoadOptions counts;
  counts.measurement_mode = Windows::kCount;
  length = LengthOf(counts);
  EXPECT_EQ(length.requests, 50);
  EXPECT_EQ(length.repeats, 3);
}

TEST(LengthOf, NotesPerfAnalyzersFlagsThatHaveNoEffect) {
  LoadOptions options;
  options.duration_s = 1;
  options.max_trials = 3;
  EXPECT_THAT(LengthOf(options).note, HasSubstr("-r has no effect"));
  options.repeats = 2;
  options.stability_percentage = 20;
  EXPECT_THAT(LengthOf(options).note, HasSubstr("-r has no effect")) << "-s judges repeats";
}

TEST(FindMlperf, SetsTheScenariosLengthUnlessOneWasAskedFor) {
  LoadOptions options;
  EXPECT_FALSE(FindMlperf(options)->has_value());
  options.scenario = MlperfScenario::kMultiStream;
  const auto mlperf = FindMlperf(options);
  ASSERT_TRUE(mlperf && *mlperf);
  EXPECT_EQ(options.batch, 8);
  EXPECT_EQ(options.duration_s, 600);
  EXPECT_EQ(options.percentile, 99);
  EXPECT_EQ((*mlperf)->level.name, "multi-stream");
  LoadOptions own;
  own.scenario = MlperfScenario::kSingleStream;
  own.request_count = 100;
  own.percentile = 50;
  ASSERT_TRUE(FindMlperf(own));
  EXPECT_EQ(own.duration_s, 0);
  EXPECT_EQ(own.percentile, 50);
  LoadOptions server;
  server.scenario = MlperfScenario::kServer;
  EXPECT_FALSE(FindMlperf(server)) << "it needs a rate";
}

TEST(CheckOptions, NamesOptionsThatWouldHaveNoEffect) {
  const LoadOptions wrong[] = {
      {.target = "m", .protocol = infer::Protocol::kGrpc},
      {.target = "m", .bodies = {"file"}},
      {.target = "m", .scenario = MlperfScenario::kOffline, .sync = true},
      {.target = "m", .distribution = infer::Distribution::kGamma},
      {.target = "m", .rate_range = "5", .sync = true},
      {.target = "m", .concurrency_range = "1", .rate_range = "5"},
      {.target = "m", .input_data = {"zero"}, .data = {"pictures"}},
      {.target = "m", .recipe = "r.yaml"},
      {.target = "m", .output_shared_memory = 5},
      {.target = "m", .duration_s = 1, .request_count = 5},
      {.target = "m", .latency_threshold_ms = 5, .find_peak = true},
      {.target = "m", .rate_range = "5", .find_peak = true},
      {.target = "m", .rate_range = "5,6", .latency_threshold_ms = 5, .find_peak = true},
      {.target = "m", .depth = 4},
  };
  for (const LoadOptions& options : wrong) {
    const Status status = CheckOptions(options);
    const auto index = &options - wrong;
    ASSERT_FALSE(status) << index;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument) << index;
  }
}

TEST(CheckOptions, TakesThoseThatFitTogether) {
  EXPECT_TRUE(CheckOptions({.target = "m"}));
  EXPECT_TRUE(CheckOptions({.target = "m", .rate_range = "5", .distribution = infer::Distribution::kGamma}));
  EXPECT_TRUE(CheckOptions({.target = "m", .rate_range = "5", .latency_threshold_ms = 5, .find_peak = true}));
  EXPECT_TRUE(CheckOptions({.endpoint = "http://h:1/", .bodies = {"f"}}));
  EXPECT_TRUE(CheckOptions({.target = "m", .scenario = MlperfScenario::kOffline, .depth = 4}));
}

}  // namespace
}  // namespace weir::load
