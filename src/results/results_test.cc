#include <gmock/gmock.h>

#include "base/fields.h"
#include "base/testing/json_path.h"
#include "results/load_result.h"
#include "results/prepare_result.h"
#include "results/run_result.h"

namespace weir::results {
namespace {

using testing::HasSubstr;

PrepareResult Prepared() {
  return {.folder = "set",
          .format = "raw",
          .images = 7,
          .rejected = {{"damaged", 2}},
          .skipped = 1,
          .images_per_s = 12.5,
          .wall_s = 0.5,
          .bytes_in = 100,
          .bytes_out = 200,
          .splits = Json{{"train", 5}, {"test", 2}},
          .labels = PrepareResult::Labels{.labelled = 6, .unlabelled = 1, .unlabelled_examples = {"a.jpg"}},
          .workers = 2,
          .stages_s = PrepareResult::Stages{.decode = 0.7, .write = 0.1},
          .bottleneck = Bottleneck{.stage = "decode", .share = 0.7},
          .seed = 3,
          .provenance = Json{{"host", "h"}},
          .command = "weir prepare"};
}

RunResult Ran() {
  RunResult result{
      .model = "m",
      .mode = "sync",
      .images = 10,
      .rejected_by_reason = {{"damaged", 1}},
      .throughput_images_per_s = 5,
      .wall_s = 2,
      .resources = {.client_cpu = Range{.mean = 1, .max = 2, .min = 0.5}, .samples = 3},
      .bottleneck =
          Bottleneck{.stage = "infer", .share = 0.9, .share_of = "the time", .gain = 1.5, .text = "infer"},
      .warnings = {"few"},
      .provenance = Json::object(),
      .command = "weir run"};
  result.engine.engine = "emulated";
  result.engine.threads = 2;
  result.servers = MakeServerShares("round-robin", {{.server = "http://a:1", .answered = 3, .moved = 1},
                                                    {.server = "http://b:1", .answered = 5, .failed = 2}});
  result.bounds.infer = 6;
  result.bounds.pipeline = 6;
  result.cpu_ms_per_image = RunResult::CpuTimes{.load_prepare = 1, .other = 2, .infer = 3};
  return result;
}

TEST(PrepareResult, ComesBackFromItsJson) {
  const auto again = PrepareResult::FromJson(Prepared().ToJson());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, Prepared());
}

TEST(PrepareResult, LeavesOutWhatIsNotDefined) {
  const Json json = PrepareResult{.folder = "set", .format = "raw"}.ToJson();
  for (const char* key : {"images_per_s", "splits", "labels", "workers", "stages_s", "bottleneck", "seed"})
    EXPECT_FALSE(json.contains(key)) << key;
  EXPECT_EQ(json["rejected"], Json::object());
  EXPECT_FALSE(Prepared().ToJson()["bottleneck"].contains("gain_at_most"));
}

TEST(RunResult, ComesBackFromItsJson) {
  const auto again = RunResult::FromJson(Ran().ToJson());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, Ran());
}

TEST(RunResult, HasTheEnginesKeysBesideItsOwn) {
  const Json json = Ran().ToJson();
  EXPECT_EQ(json["engine"], "emulated");
  EXPECT_EQ(json["bound_images_per_s"], (Json{{"infer", 6.0}, {"pipeline", 6.0}}));
  EXPECT_EQ(json["bottleneck"]["gain_at_most"], 1.5);
}

TEST(RunResult, NamesTheKeyThatIsMissingOrOfAnotherKind) {
  Json json = Ran().ToJson();
  json["stages_ms"]["infer"] = "fast";
  const auto other = RunResult::FromJson(json);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(other.error().message, testing::AllOf(HasSubstr("stages_ms"), HasSubstr("infer")));
  json = Ran().ToJson();
  json.erase("images");
  EXPECT_THAT(RunResult::FromJson(json).error().message, HasSubstr("\"images\" is missing"));
  EXPECT_FALSE(RunResult::FromJson(Json::array()));
}

TEST(RunResult, RefusesAnotherSchemaVersionAndSaysWhatToDo) {
  Json json = Ran().ToJson();
  json["schema_version"] = 2;
  EXPECT_EQ(RunResult::FromJson(json).error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(RunResult::FromJson(json).error().message, HasSubstr("or a newer one"));
  json["schema_version"] = 0;
  EXPECT_THAT(RunResult::FromJson(json).error().message, HasSubstr("make it again"));
  json.erase("schema_version");
  EXPECT_EQ(RunResult::FromJson(json).error().code, ErrorCode::kUnsupported);
  json["schema_version"] = "1";
  EXPECT_EQ(RunResult::FromJson(json).error().code, ErrorCode::kCorrupt);
}

TEST(Fields, RefusesNumbersThatDoNotFit) {
  int small = 0;
  EXPECT_FALSE(ReadFields(Json(int64_t{1} << 40), small));
  EXPECT_FALSE(ReadFields(Json(1.5), small));
  EXPECT_FALSE(ReadFields(Json(uint64_t{1} << 63), small));
  EXPECT_TRUE(ReadFields(Json(-3), small));
  EXPECT_EQ(small, -3);
}

TEST(ServerShares, ShareAndImbalanceFollowFromTheCounts) {
  const ServerShares shares = *Ran().servers;
  EXPECT_EQ(shares.retried, 1);
  EXPECT_DOUBLE_EQ(shares.each[0].share, 0.375);
  EXPECT_DOUBLE_EQ(shares.imbalance, 0.25);
  EXPECT_THAT(ServerSharesText(shares), testing::AllOf(HasSubstr("imbalance 25.00 %"),
                                                       HasSubstr("1 moved away"), HasSubstr("2 failed")));
  EXPECT_EQ(MakeServerShares("round-robin", {{.server = "a"}, {.server = "b"}}).imbalance, 0);
}

LoadResult Loaded() {
  LoadResult::Level level;
  level.load_model = LoadResult::kClosed;
  level.concurrency = 4;
  level.mode = "async";
  level.verdict = {.throughput = "VALID", .latency = "SUSPECT"};
  level.reasons = {{.reason = "steal", .about = {"latency"}, .evidence = "3 %"}};
  level.throughput_per_s = 10;
  level.planned = level.answered = 20;
  level.response = {
      .mean = 2, .min = 1, .percentiles = {2}, .max = 3, .n = 20, .intervals_95 = {{"p50", {1.5, 2.5}}}};
  level.errors = {{"timeout", 1}};
  level.server = LoadResult::ServerTimes{.queue = 1, .request = 2, .outside = -0.5};
  level.split =
      LoadResult::Split{.slip = -1, .wire_and_wait = 3, .server = LoadResult::Split::Server{.queue = 1}};
  level.slowest = LoadResult::Slowest{.above_percentile = 99, .n = 1, .mean = 3, .split = {.slip = 0.5}};
  level.resources = Resources{
      .app_cpu = Range{.mean = 1, .max = 2, .min = 0}, .wall_s = 1, .samples = 10, .period_ms = 100};
  level.trace = {{.from_s = 0, .to_s = 1, .planned = 3, .answered = 2, .failed = 1, .planned_per_s = 3}};
  level.runs = {{.throughput_per_s = 10, .measured_s = 2, .answered = 20, .planned = 20}};
  level.servers = MakeServerShares("least-in-flight", {{.server = "http://a:1", .answered = 20}});
  level.error_messages = {"late"};
  return {.model = "m",
          .protocol = "grpc",
          .batch = 2,
          .claim = LoadResult::Claim{.percentile = 99, .latency_threshold_ms = 5},
          .levels = {level},
          .peak = LoadResult::Peak{.confirmed = true, .runs = 3, .request_rate = 100},
          .generator = LoadResult::Ceiling{.ceiling_per_s = 1000},
          .provenance = Json{{"host", "h"}}};
}

TEST(LoadResult, ComesBackFromItsJson) {
  const auto again = LoadResult::FromJson(Loaded().ToJson());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, Loaded());
}

TEST(LoadResult, SplitStandsBesideTheServersPartsInOneObject) {
  const Json split = Loaded().ToJson()["levels"][0]["split_ms"];
  EXPECT_EQ(split["slip"], -1);
  EXPECT_EQ(split["queue"], 1);
  EXPECT_FALSE(Loaded().ToJson()["levels"][0]["slowest"]["split_ms"].contains("queue"));
}

TEST(LoadResult, RefusesFiguresThatCannotBe) {
  const auto message = [](const char* pointer, const Json& value) {
    Json json = Loaded().ToJson();
    PlaceOf(json, pointer) = value;
    const auto read = LoadResult::FromJson(json);
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(message("/levels/0/planned", -1), "levels[0]: key \"planned\" is not a number from 0");
  EXPECT_EQ(message("/levels/0/split_ms/slip", -2), "");
  EXPECT_EQ(message("/levels/0/load_model", "half"),
            "levels[0]: key \"load_model\" is not \"closed\" or \"open\"");
  EXPECT_EQ(message("/levels/0/response_ms/intervals_95/p50", Json{1}),
            "levels[0]: response_ms: intervals_95: key \"p50\" is not a list of two numbers");
  EXPECT_EQ(message("/levels/0/resources/app_cpu/max", "much"),
            "levels[0]: resources: app_cpu: key \"max\" is not a number");
  EXPECT_THAT(message("/levels/0/errors/timeout", -1), HasSubstr("below 0"));
}

}  // namespace
}  // namespace weir::results
