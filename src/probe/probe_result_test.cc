#include "probe/probe_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

TrainReport SmallReport() {
  TrainRun run{.accelerators = 2};
  run.train.steps = 40;
  run.train.reads.open_ns.Add(2000);
  run.train.reads.read_ns.Add(50'000);
  run.train.reads.close_ns.Add(1000);
  run.train.epochs = {{0, 100}, {0, 0}, {50, 100}};  // nobody asked in the second
  TrainReport report{.profile = {.name = "own", .step = 1ms}};
  report.fed = {.value = 2, .low = 1, .high = 3};
  report.facts.runs = {run};
  report.facts.set = {.bytes = 1000, .samples = 10};
  report.runs = {run};
  return report;
}

TEST(MakeResult, OfTrainingComesBackFromItsJson) {
  const results::StorageProbeResult result = MakeResult(SmallReport());
  ASSERT_TRUE(result.train);
  EXPECT_THAT(result.train->runs.at(0).cached_share_by_epoch, testing::ElementsAre(0, 0.5));
  EXPECT_EQ(result.reads.read_us.count, 1);
  const auto read = results::StorageProbeResult::FromJson(result.ToJson());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, result);
}

TEST(MakeResult, OfOtherPhasesComesBackFromItsJson) {
  MixReport mix;
  mix.alone.infer.response_ns.Add(1000);
  mix.together.infer.response_ns.Add(4000);
  const results::StorageProbeResult mixed = MakeResult(mix);
  EXPECT_NEAR(mixed.mix.value().together_over_alone.infer_p99_response.value_or(0), 4, 0.1);
  InferReport infer{.options = {.streams = 3}, .runs = {{}, {}}};
  infer.runs[1].result.planned = 5;
  const results::StorageProbeResult inferred = MakeResult(infer);
  EXPECT_EQ(inferred.infer.value().frames.planned, 5);
  const results::StorageProbeResult streamed = MakeResult(StreamReport{.runs = {{}}});
  for (const auto& result : {mixed, inferred, streamed}) {
    const auto read = results::StorageProbeResult::FromJson(result.ToJson());
    ASSERT_TRUE(read) << result.phase << ": " << read.error().message;
    EXPECT_EQ(*read, result) << result.phase;
  }
}

TEST(MakeResult, OfAHostComesBackFromItsJson) {
  HostReport report{.speed = {.threads = 2, .arithmetic = "avx2"}};
  report.speed.memory_read_bytes = {.one_thread = 1e9, .all_threads = 2e9};
  report.verdict.Add(results::Standing::kSuspect, "steal", "3 % of the CPU time");
  const results::HostProbeResult result = MakeResult(report);
  EXPECT_EQ(results::HostProbeResult::FromJson(result.ToJson()).value(), result);
  const std::string text = ProbeText(TextStyle(), result);
  EXPECT_THAT(text, HasSubstr("memory read   1.00 GB/s on one thread, 2.00 on all"));
  EXPECT_THAT(text, HasSubstr("verdict SUSPECT\n  steal: 3 % of the CPU time"));
  EXPECT_THAT(text, Not(HasSubstr("bf16")));
}

TEST(ProbeText, SaysWhatIsFedInEveryRepeatAndInTheBest) {
  TrainReport report = SmallReport();
  EXPECT_THAT(ProbeText(TextStyle(), MakeResult(report)),
              HasSubstr("feeds 2 accelerators of own (1 in every repeat, 3 in the best)\n"));
  report.fed = {};
  EXPECT_THAT(ProbeText(TextStyle(), MakeResult(report)), HasSubstr("feeds none of the numbers"));
}

}  // namespace
}  // namespace weir::probe
