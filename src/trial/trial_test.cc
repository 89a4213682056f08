#include "trial/trial.h"

#include <gmock/gmock.h>

namespace weir::trial {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Workload MakeWorkload() {
  return {.program = "weir",
          .model_folder = "/made/tiny",
          .data = {"pictures", "more"},
          .arguments = {"--batch", "8"},
          .in_process_arguments = {"--streams", "1"},
          .in_flight = 3};
}

TEST(RunArguments, HoldTheDepthWhereSomethingOverlapsAndTheEngineWhereItIsTheirs) {
  EXPECT_THAT(RunArguments(MakeWorkload(), {Architecture::kDistributed, Protocol::kHttp, Mode::kSync},
                           "http://h:1/tiny", "a.csv"),
              ElementsAre("weir", "run", "http://h:1/tiny", "pictures", "more", "--mode", "sync", "--answers",
                          "a.csv", "--json", "-", "--batch", "8"));
  EXPECT_THAT(RunArguments(MakeWorkload(), {.mode = Mode::kAsync}, "/made/tiny", "a.csv"),
              ElementsAre("weir", "run", "/made/tiny", "pictures", "more", "--mode", "async", "--answers",
                          "a.csv", "--json", "-", "--in-flight", "3", "--batch", "8", "--streams", "1"));
}

TEST(ReadResult, CountsTheCpuOfAnImageFromEveryPartOfTheProcess) {
  const auto outcome =
      ReadResult(Json::parse(R"({"images": 1000, "throughput_images_per_s": 500.0, "wall_s": 2.0,
      "resources": {"app_cpu": {"mean": 0.5, "max": 1, "min": 0}, "recogniser_cpu": {"mean": 1.25, "max": 2, "min": 1}}})"));
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->images, 1000);
  EXPECT_DOUBLE_EQ(outcome->images_per_s, 500);
  EXPECT_DOUBLE_EQ(outcome->client_cpu_ms, 3.5);
  EXPECT_FALSE(outcome->server_cpu_ms.has_value());
}

TEST(ReadResult, NamesWhatIsNotThere) {
  EXPECT_THAT(ReadResult(Json::parse(R"({"images": 1})")).error().message,
              HasSubstr("throughput_images_per_s"));
  EXPECT_EQ(ReadResult(Json::parse(R"({"images": 0, "throughput_images_per_s": 0.0})")).error().message,
            "no picture was answered");
}

TEST(Site, SaysWhyAnArchitectureCannotBeHad) {
  const SteadyClock clock;
  const Site site({.program = "weir", .model = "/models/tiny", .image = "localhost/weir-no-such-image"},
                  clock);
  const auto missing = site.Missing(Architecture::kMicroservice);
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->code, ErrorCode::kUnsupported);
  EXPECT_THAT(missing->message,
              HasSubstr("no container of localhost/weir-no-such-image can be started here"));
  EXPECT_FALSE(site.Missing(Architecture::kInProcess).has_value());
}

}  // namespace
}  // namespace weir::trial
