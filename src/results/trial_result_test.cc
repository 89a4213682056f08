#include "results/trial_result.h"

#include <gtest/gtest.h>

namespace weir::results {
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
  EXPECT_EQ(DumpJson(verdict.ToValue()),
            R"({"verdict":"SUSPECT","reasons":[{"reason":"foreign-cpu","evidence":"0.4 cores"}]})");
}

TEST(Verdict, NamesWhatItDoesNotKnow) {
  const auto verdict = Verdict::FromValue({{"verdict", "FINE"}, {"reasons", Json::array()}});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error(), (Error{ErrorCode::kCorrupt, "\"FINE\" is no verdict"}));
  EXPECT_FALSE(
      Verdict::FromValue({{"verdict", "VALID"}, {"reasons", {{{"reason", "weather"}, {"evidence", ""}}}}}));
  EXPECT_FALSE(Verdict::FromValue({{"verdict", "VALID"}}));
  EXPECT_FALSE(Verdict::FromValue(Json::array()));
}

TEST(TrialResult, ComesBackFromItsJson) {
  TrialResult record;
  record.factors = {{"batch", 8}, {"mode", "async"}};
  record.metrics = {{"throughput_images_per_s", 457.5}};
  record.verdict = {.standing = Standing::kFailed, .message = "the server did not start"};
  record.provenance = "provenance.json";
  record.command = "weir run tiny pictures";
  const auto again = TrialResult::FromJson(*ParseJson(DumpJson(record.ToJson())));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, record);
}

TEST(TrialResult, NamesTheKeyThatIsMissing) {
  Json json = TrialResult().ToJson();
  json.erase("metrics");
  EXPECT_EQ(TrialResult::FromJson(json).error().message, "key \"metrics\" is missing");
  EXPECT_FALSE(TrialResult::FromJson(Json(3)));
}

TEST(TrialMetrics, ComeBackFromTheirJson) {
  TrialMetrics metrics;
  metrics.throughput_images_per_s = 80;
  metrics.stages_ms = RunResult::Stages{.infer = 7.5};
  metrics.response = LoadResult::Times{.mean = 2, .min = 1, .max = 3, .n = 20};
  metrics.server = TrialMetrics::ServerTimes{.queue = 1, .outside = -0.25};
  metrics.resources = Resources{.app_cpu = Range{.mean = 1, .max = 2, .min = 0}, .samples = 2};
  metrics.machine_cpus = 2;
  metrics.link = TrialMetrics::Link{.to_server_bytes = 10, .rate_changes = 3};
  metrics.absent.resources = TrialMetrics::Absent::Resources{.gpu_percent = "there is no accelerator"};
  const Json json = metrics.ToJson();
  EXPECT_FALSE(json.contains("wall_s"));
  EXPECT_EQ(json["absent"]["resources"]["gpu_percent"], "there is no accelerator");
  const auto again = TrialMetrics::FromJson(json);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, metrics);
}

TEST(Resources, TakeTheValuesThatOthersHave) {
  Resources resources{.app_cpu = Range{9, 9, 9}, .gpu_percent = Range{50, 60, 40}};
  resources.Update({.client_cpu = Range{2, 2, 2}, .app_cpu = Range{1, 1, 1}});
  EXPECT_EQ(resources.app_cpu, (Range{1, 1, 1}));
  EXPECT_EQ(resources.client_cpu, (Range{2, 2, 2}));
  EXPECT_EQ(resources.gpu_percent, (Range{50, 60, 40}));
}

TEST(Resources, NameEachRangeByItsPlace) {
  Resources resources{.app_cpu = Range{1, 1, 1}};
  resources.gpus = {{}, {.percent = Range{5, 6, 4}}};
  resources.server_metrics = ServerUse{.cpu = Range{3, 3, 3}};
  std::vector<std::string> names;
  for (const auto& [name, range] : resources.Ranges()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"app_cpu", "gpus[1].percent", "server_metrics.cpu"}));
}

}  // namespace
}  // namespace weir::results
