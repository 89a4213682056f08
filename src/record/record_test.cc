#include "record/record.h"

#include <gtest/gtest.h>

namespace weir::record {
namespace {

TEST(Verdict, TakesTheWorstStandingAndKeepsEveryCause) {
  Verdict verdict;
  verdict.Add(Standing::kInvalid, {Reason::kRateMissed, "sent 90/s of 100/s"});
  verdict.Add(Standing::kSuspect, {Reason::kSteal, "steal 3 %, limit 1 %"});
  EXPECT_EQ(verdict.standing, Standing::kInvalid);
  EXPECT_EQ(verdict.causes.size(), 2u);
}

TEST(Verdict, StandsInJsonUnderTheNamesOfTheClosedLists) {
  Verdict verdict;
  verdict.Add(Standing::kSuspect, {Reason::kForeignCpu, "0.4 cores"});
  EXPECT_EQ(DumpJson(verdict.ToJson()),
            R"({"verdict":"SUSPECT","reasons":[{"reason":"foreign-cpu","evidence":"0.4 cores"}]})");
}

TEST(Verdict, NamesWhatItDoesNotKnow) {
  const auto verdict = Verdict::FromJson({{"verdict", "FINE"}, {"reasons", Json::array()}});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error(), (Error{ErrorCode::kCorrupt, "\"FINE\" is no verdict"}));
  EXPECT_FALSE(
      Verdict::FromJson({{"verdict", "VALID"}, {"reasons", {{{"reason", "weather"}, {"evidence", ""}}}}}));
  EXPECT_FALSE(Verdict::FromJson({{"verdict", "VALID"}}));
  EXPECT_FALSE(Verdict::FromJson(Json::array()));
}

TEST(Record, ComesBackFromItsJson) {
  Record record;
  record.factors = {{"batch", 8}, {"mode", "async"}};
  record.metrics = {{"throughput_images_per_s", 457.5}};
  record.verdict = {.standing = Standing::kFailed, .message = "the server did not start"};
  record.provenance = "provenance.json";
  record.command = "weir run tiny pictures";
  const auto again = Record::FromJson(*ParseJson(DumpJson(record.ToJson())));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, record);
}

TEST(Record, NamesTheKeyThatIsMissing) {
  Json json = Record().ToJson();
  json.erase("metrics");
  EXPECT_EQ(Record::FromJson(json).error().message, "key \"metrics\" is missing or is not an object");
  EXPECT_FALSE(Record::FromJson(Json(3)));
}

}  // namespace
}  // namespace weir::record
