#include "trial/outcome.h"

#include <gmock/gmock.h>

namespace weir::trial {
namespace {

using record::Standing;
using testing::HasSubstr;

Json RunResult() {
  return Json::parse(
      R"({"images": 1000, "throughput_images_per_s": 500.0, "wall_s": 2.0, "stages_ms": {"infer": 7.5},
      "resources": {"client_cpu": {"mean": 1, "max": 1, "min": 1}, "steal_percent": 0.1, "wall_s": 2.0},
      "bottleneck": {"stage": "decode", "share": 0.9}, "provenance": {"usable_cpus": 2}, "accuracy": {"top1": 0.5}})");
}

Json LoadResult() {
  return Json::parse(
      R"({"levels": [{"rows_per_s": 80.0, "throughput_per_s": 10.0, "measured_s": 3.0, "answered": 30,
      "response_ms": {"mean": 4, "intervals_95": {"p50": [1, 2]}},
      "verdict": {"throughput": "SUSPECT", "latency": "INVALID"},
      "reasons": [{"reason": "steal", "about": ["throughput", "latency"], "evidence": "5 %"},
                  {"reason": "generator-late", "about": ["latency"], "evidence": "2 %"}]}], "provenance": {"usable_cpus": 2}})");
}

TEST(MakeOutcome, TakesTheApplicationsOwnBottleneck) {
  const auto outcome = MakeOutcome(RunResult(), {}, {});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->metrics["bottleneck"], "decode");
  EXPECT_EQ(outcome->metrics["stages_ms"]["infer"], 7.5);
  EXPECT_EQ(outcome->verdict.standing, Standing::kValid);
  EXPECT_THAT(outcome->metrics["absent"]["resources"]["gpu_percent"].get<std::string>(),
              HasSubstr("no accelerator"));
}

TEST(MakeOutcome, SuspectsWhatTheMachineDisturbed) {
  Json result = RunResult();
  result["resources"]["steal_percent"] = 4;
  EXPECT_EQ(MakeOutcome(result, {}, {})->verdict.standing, Standing::kSuspect);
  result["resources"]["throttled_s"] = 0.5;
  EXPECT_EQ(MakeOutcome(result, {}, {})->verdict.standing, Standing::kInvalid);
}

TEST(MakeOutcome, SuspectsWhatOthersTookOfTheCores) {
  Json result = RunResult();  // one of two cores is busy
  const Setting alone, beside{.architecture = Architecture::kMicroservice};
  const auto standing = [&](double app, const Setting& setting, const Observation& seen) {
    result["resources"]["app_cpu"] = {{"mean", app}, {"max", 1}, {"min", 0}};
    return MakeOutcome(result, setting, seen)->verdict.standing;
  };
  const auto with_recogniser = [&](double cores) {
    result["resources"]["recogniser_cpu"] = {{"mean", cores}, {"max", 1}, {"min", 0}};
  };
  with_recogniser(0);
  EXPECT_EQ(standing(0.9, alone, {}), Standing::kValid);
  EXPECT_EQ(standing(0.2, alone, {}), Standing::kSuspect);
  with_recogniser(0.7);  // an engine of the process itself is counted apart
  EXPECT_EQ(standing(0.2, alone, {}), Standing::kValid);
  result["resources"].erase("recogniser_cpu");
  EXPECT_EQ(standing(0.2, beside, {}),
            Standing::kValid);  // the rest may be the server's, which nobody watched
  result["server_resources"]["app_cpu"] = {{"mean", 0.7}, {"max", 1}, {"min", 0}};
  EXPECT_EQ(standing(0.2, beside, {}), Standing::kValid);
  EXPECT_EQ(standing(0.01, beside, {}), Standing::kSuspect);
  Observation elsewhere;
  elsewhere.there = Json::object();
  EXPECT_EQ(standing(0.2, beside, elsewhere),
            Standing::kSuspect);  // a server on another node takes none here
}

TEST(MakeOutcome, PutsTheServersSideBesideTheClients) {
  Json result = RunResult();
  result["bottleneck"]["stage"] = "server";
  const Setting setting{.architecture = Architecture::kMicroservice};
  result["server_resources"] = Json::parse(
      R"({"app_cpu": {"mean": 1.9, "max": 2, "min": 1}, "client_cpu": {"mean": 1.5, "max": 2, "min": 1},
      "process_memory_bytes": {"mean": 7, "max": 8, "min": 6}})");
  const auto outcome = MakeOutcome(result, setting, {});
  EXPECT_EQ(outcome->metrics["resources"]["recogniser_cpu"]["mean"], 1.9);
  EXPECT_EQ(outcome->metrics["resources"]["server_cpu"]["mean"], 1.5);
  EXPECT_EQ(outcome->metrics["resources"]["container_memory_bytes"]["max"], 8);
  EXPECT_EQ(outcome->metrics["bottleneck"], "infer");  // 1.9 of 2 cores
}

TEST(MakeOutcome, FindsAFullLink) {
  Json result = RunResult();
  result["bottleneck"]["stage"] = "server";
  const Setting setting{.architecture = Architecture::kDistributed};
  // 1.2 GB in 2 s of 5 Gbit/s
  const auto outcome = MakeOutcome(result, setting, {.link = Observation::Link{1'200'000'000, 1000, 5}});
  EXPECT_EQ(outcome->metrics["bottleneck"], "network");
  EXPECT_NEAR(outcome->metrics["bottleneck_share"].get<double>(), 0.96, 1e-9);
}

TEST(MakeOutcome, TellsHowOftenAndHowLateTheRateOfAVaryingLinkWasSet) {
  const Setting setting{.architecture = Architecture::kDistributed};
  Observation::Link link{.to_server = 1000, .from_server = 1000, .gbit_per_s = 3};
  EXPECT_FALSE(MakeOutcome(RunResult(), setting, {.link = link})->metrics["link"].contains("rate_changes"));
  link.rate_changes = 7;
  link.latest_change_ms = 0.25;
  const auto outcome = MakeOutcome(RunResult(), setting, {.link = link});
  EXPECT_EQ(outcome->metrics["link"]["rate_changes"], 7);
  EXPECT_EQ(outcome->metrics["link"]["latest_change_ms"], 0.25);
}

TEST(MakeOutcome, ReadsTheClaimThatWasAskedFor) {
  const Setting closed{.architecture = Architecture::kMicroservice, .load = ClosedLoad{}};
  const auto throughput = MakeOutcome(LoadResult(), closed, {});
  ASSERT_TRUE(throughput) << throughput.error().message;
  EXPECT_EQ(throughput->metrics["throughput_images_per_s"], 80.0);
  EXPECT_EQ(throughput->verdict.standing, Standing::kSuspect);
  EXPECT_EQ(throughput->verdict.causes.size(), 1u);
  EXPECT_FALSE(throughput->metrics["response_ms"].contains("intervals_95"));
  const Setting open{.architecture = Architecture::kMicroservice, .load = OpenLoad{}};
  EXPECT_EQ(MakeOutcome(LoadResult(), open, {})->verdict.standing, Standing::kInvalid);
}

TEST(MakeOutcome, TakesTheServersNodeFromItsOwnMonitor) {
  Json result = RunResult();
  result["server_resources"] = {{"app_cpu", {{"mean", 9}}}, {"gpu_percent", {{"mean", 50}}}};
  const Setting setting{.architecture = Architecture::kDistributed};
  Observation seen;
  seen.there = Json{{"app_cpu", {{"mean", 1.5}}}, {"client_cpu", {{"mean", 1.75}}}};
  const Json resources = MakeOutcome(result, setting, seen)->metrics["resources"];
  EXPECT_EQ(resources["recogniser_cpu"]["mean"], 1.5);
  EXPECT_EQ(resources["server_cpu"]["mean"], 1.75);
  EXPECT_EQ(resources["gpu_percent"]["mean"], 50);
  const Observation unseen{.there_absent = "no weir there"};
  EXPECT_EQ(MakeOutcome(result, setting, unseen)->metrics["absent"]["server_resources"], "no weir there");
}

TEST(MakeOutcome, FailsWhereNothingWasAnswered) {
  Json result = RunResult();
  result["images"] = 0;
  EXPECT_EQ(MakeOutcome(result, {}, {}).error().code, ErrorCode::kIo);
  EXPECT_FALSE(MakeOutcome(Json::object(), {}, {}));
}

}  // namespace
}  // namespace weir::trial
