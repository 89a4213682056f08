#include <gmock/gmock.h>

#include "base/fields.h"
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
      .resources = Json::object(),
      .bottleneck =
          Bottleneck{.stage = "infer", .share = 0.9, .share_of = "the time", .gain = 1.5, .text = "infer"},
      .warnings = {"few"},
      .provenance = Json::object(),
      .command = "weir run"};
  result.engine.engine = "emulated";
  result.engine.threads = 2;
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

}  // namespace
}  // namespace weir::results
