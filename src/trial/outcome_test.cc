#include "trial/outcome.h"

#include <gmock/gmock.h>

#include "results/provenance.h"

namespace weir::trial {
namespace {

using results::LoadResult;
using results::Range;
using results::Resources;
using results::RunResult;
using results::Standing;
using results::TrialMetrics;
using testing::HasSubstr;

Json MadeProvenance() {
  return results::Provenance{.host = "h", .usable_cpus = 2, .build_id = "1", .command = "weir"}.ToJson();
}

RunResult MadeRun() {
  RunResult result;
  result.images = 1000;
  result.throughput_images_per_s = 500;
  result.wall_s = 2;
  result.stages_ms.infer = 7.5;
  result.resources.client_cpu = Range{1, 1, 1};
  result.resources.steal_percent = 0.1;
  result.resources.wall_s = 2;
  result.batch = 10;
  // One thread decodes for 1.9 of 2 s, an accelerator computes for 1.
  result.costs = results::Costs{.images = 1000,
                                .wall_s = 2,
                                .cores = 2,
                                .load_cpu_s = 1.9,
                                .engine_busy_s = 1,
                                .in_flight = 2,
                                .round_trip_s = 1.2};
  result.accuracy = RunResult::Accuracy{.top1 = 0.5};
  result.provenance = MadeProvenance();
  return result;
}

// A model of which its server tells the instances and the CPU threads of its engine.
infer::ModelInfo Served(const char* instances, const char* threads) {
  return {.parameters = {{"instances_in_force", instances}, {"threads_in_force", threads}}};
}

// The same before a server with 4 batches on their way all the time, of which it computes 10 ms each.
RunResult RemoteRun() {
  RunResult result = MadeRun();
  result.engine.server_ms = RunResult::ServerTimes{.queue = 0, .compute_infer = 10};
  result.engine.server_mean_batch = 10;
  result.costs->remote = true;
  result.costs->load_cpu_s = 0.1;
  result.costs->engine_busy_s = 0;
  result.costs->in_flight = 4;
  result.costs->round_trip_s = 7.9;
  result.costs->held_back_s = 1.9;
  return result;
}

LoadResult MadeLoad() {
  LoadResult::Level level;
  level.rows_per_s = 80;
  level.throughput_per_s = 10;
  level.measured_s = 3;
  level.answered = 30;
  level.response.mean = 4;
  level.response.intervals_95 = {{"p50", {1, 2}}};
  level.verdict = {.throughput = "SUSPECT", .latency = "INVALID"};
  level.reasons = {{.reason = "steal", .about = {"throughput", "latency"}, .evidence = "5 %"},
                   {.reason = "generator-late", .about = {"latency"}, .evidence = "2 %"}};
  LoadResult result;
  result.levels = {level};
  result.provenance = MadeProvenance();
  return result;
}

TEST(MakeOutcome, TakesTheApplicationsOwnBottleneck) {
  const auto outcome = MakeOutcome(MadeRun(), {}, {});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->metrics.bottleneck, "decode");
  EXPECT_EQ(outcome->metrics.bottleneck_next, "infer");
  EXPECT_NEAR(*outcome->metrics.bottleneck_next_images_per_s, 1000, 1e-9);
  EXPECT_NEAR(*outcome->metrics.bounds->decode, 1000 / 1.9, 1e-9);
  EXPECT_EQ(outcome->metrics.stages_ms->infer, 7.5);
  EXPECT_EQ(outcome->verdict.standing, Standing::kValid);
  EXPECT_THAT(*outcome->metrics.absent.resources->gpu_percent, HasSubstr("no accelerator"));
}

TEST(MakeOutcome, TakesTheLatencyAndTheFatesOfLiveStreams) {
  results::WatchResult watch;
  watch.frames = {.captured = 100, .answered = 90, .in_time = 80, .dropped = {{"expired", 10}}};
  watch.in_time_percent = 80;
  watch.wall_s = 9;
  watch.latency_ms =
      results::WatchResult::Times{.n = 90, .mean = 30, .min = 10, .max = 70, .p50 = 28, .p99 = 65};
  watch.bottleneck = results::Bottleneck{.stage = "infer", .share = 0.9};
  watch.provenance = MadeProvenance();
  EXPECT_FALSE(MakeOutcome(watch, {}, {})) << "it tells of no resources";
  watch.resources = MadeRun().resources;
  const auto outcome = MakeOutcome(watch, {}, {});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->metrics.throughput_images_per_s, 10);
  EXPECT_EQ(outcome->metrics.response->percentiles[3], 65);
  EXPECT_FALSE(outcome->metrics.response->percentiles[4]);
  EXPECT_EQ(outcome->metrics.watch->dropped.at("expired"), 10);
  EXPECT_EQ(outcome->metrics.bottleneck, "infer");
  EXPECT_EQ(outcome->verdict.standing, Standing::kValid);
  const auto again = TrialMetrics::FromJson(outcome->metrics.ToJson());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->watch, outcome->metrics.watch);
  watch.frames = {};
  EXPECT_THAT(MakeOutcome(watch, {}, {}).error().message, HasSubstr("no frame"));
}

TEST(MakeOutcome, SuspectsWhatTheMachineDisturbed) {
  RunResult result = MadeRun();
  result.resources.steal_percent = 4;
  EXPECT_EQ(MakeOutcome(result, {}, {})->verdict.standing, Standing::kSuspect);
  result.resources.throttled_s = 0.5;
  EXPECT_EQ(MakeOutcome(result, {}, {})->verdict.standing, Standing::kInvalid);
}

TEST(MakeOutcome, SuspectsWhatOthersTookOfTheCores) {
  RunResult result = MadeRun();  // one of two cores is busy
  const Setting alone, beside{.architecture = Architecture::kMicroservice};
  const auto standing = [&](double app, const Setting& setting, const Observation& seen) {
    result.resources.app_cpu = Range{.mean = app, .max = 1, .min = 0};
    return MakeOutcome(result, setting, seen)->verdict.standing;
  };
  const auto with_recogniser = [&](double cores) {
    result.resources.recogniser_cpu = Range{.mean = cores, .max = 1, .min = 0};
  };
  with_recogniser(0);
  EXPECT_EQ(standing(0.9, alone, {}), Standing::kValid);
  EXPECT_EQ(standing(0.2, alone, {}), Standing::kSuspect);
  with_recogniser(0.7);  // an engine of the process itself is counted apart
  EXPECT_EQ(standing(0.2, alone, {}), Standing::kValid);
  result.resources.recogniser_cpu.reset();
  EXPECT_EQ(standing(0.2, beside, {}),
            Standing::kValid);  // the rest may be the server's, which nobody watched
  result.server_resources.emplace().app_cpu = Range{.mean = 0.7, .max = 1, .min = 0};
  EXPECT_EQ(standing(0.2, beside, {}), Standing::kValid);
  EXPECT_EQ(standing(0.01, beside, {}), Standing::kSuspect);
  Observation elsewhere;
  elsewhere.there.emplace();
  EXPECT_EQ(standing(0.2, beside, elsewhere),
            Standing::kSuspect);  // a server on another node takes none here
}

TEST(MakeOutcome, PutsTheServersSideBesideTheClients) {
  RunResult result = RemoteRun();
  const Setting setting{.architecture = Architecture::kMicroservice};
  Resources& server = result.server_resources.emplace();
  server.app_cpu = Range{.mean = 1.9, .max = 2, .min = 1};
  server.client_cpu = Range{.mean = 1.5, .max = 2, .min = 1};
  server.process_memory_bytes = Range{.mean = 7, .max = 8, .min = 6};
  const auto outcome = MakeOutcome(result, setting, {});
  EXPECT_EQ(outcome->metrics.resources->recogniser_cpu->mean, 1.9);
  EXPECT_EQ(outcome->metrics.resources->server_cpu->mean, 1.5);
  EXPECT_EQ(outcome->metrics.resources->container_memory_bytes->max, 8);
  ASSERT_TRUE(outcome->metrics.memory == std::nullopt) << "the client tells nothing of its own";
  EXPECT_EQ(outcome->metrics.bottleneck,
            "cpu");  // 1.9 of 2 cores, and what of it is the engine's is not known
  EXPECT_FALSE(outcome->metrics.bottleneck_next_images_per_s);
  const Observation cpu_engine{.served = Served("1", "2")};
  const auto told = MakeOutcome(result, setting, cpu_engine);
  EXPECT_EQ(told->metrics.bottleneck, "infer");
  EXPECT_NEAR(*told->metrics.bounds->infer, 1000 / 1.9, 1e-9);
  EXPECT_FALSE(told->metrics.bounds->server);
}

TEST(MakeOutcome, CountsTheMemoryOfClientAndServerAndNotTheMachines) {
  RunResult result = MadeRun();
  result.resources.process_memory_bytes = Range{.mean = 10, .max = 20, .min = 5};
  result.resources.host_memory_bytes = Range{.mean = 1e9, .max = 1e9, .min = 1e9};
  EXPECT_EQ(MakeOutcome(result, {}, {})->metrics.memory->max, 20);
  const Setting setting{.architecture = Architecture::kMicroservice};
  EXPECT_FALSE(MakeOutcome(result, setting, {})->metrics.memory) << "the server's is not known";
  result.server_resources.emplace().process_memory_bytes = Range{.mean = 7, .max = 8, .min = 6};
  EXPECT_EQ(MakeOutcome(result, setting, {})->metrics.memory->max, 28);
  result.server_resources->container_memory_bytes = Range{.mean = 70, .max = 80, .min = 60};
  EXPECT_EQ(MakeOutcome(result, setting, {})->metrics.memory->max, 100);
}

TEST(MakeOutcome, FindsAFullLink) {
  const RunResult result = RemoteRun();
  const Setting setting{.architecture = Architecture::kDistributed};
  // 1.2 GB in 2 s of 5 Gbit/s
  Observation seen{.link = Observation::Link{1'200'000'000, 1000, 5}};
  const auto outcome = MakeOutcome(result, setting, seen);
  EXPECT_EQ(outcome->metrics.bottleneck, "network");
  EXPECT_NEAR(*outcome->metrics.bottleneck_share, 0.96, 1e-9);
  EXPECT_FALSE(outcome->metrics.bottleneck_next_images_per_s) << "the server tells no instances";
  // 100 batches of 10 ms on two instances of an accelerator: 0.5 s, which is more than the depth needs.
  seen.served = Served("2", "0");
  const auto told = MakeOutcome(result, setting, seen);
  EXPECT_EQ(told->metrics.bottleneck_next, "infer");
  EXPECT_NEAR(*told->metrics.bottleneck_next_images_per_s, 2000, 1e-9);
  EXPECT_NEAR(*told->metrics.bounds->network, 1000 / 1.92, 1e-9);
  EXPECT_FALSE(told->metrics.bottleneck_contradiction);
}

TEST(MakeOutcome, ALoadGeneratorsLinkIsRelievedByTheServersOwnTimesToo) {
  LoadResult result = MadeLoad();
  LoadResult::Level& level = result.levels[0];
  level.concurrency = 4;
  level.service.mean = 390;  // 4 in flight over 10 a second
  level.server = LoadResult::ServerTimes{.queue = 1, .compute_infer = 40, .rows_per_batch = 8};
  result.batch = 8;
  const Setting setting{.architecture = Architecture::kDistributed, .load = ClosedLoad{}};
  // 30 requests in 3 s took 0.29 GB of 0.8 Gbit/s.
  const Observation seen{.link = Observation::Link{290'000'000, 1000, 0.8}, .served = Served("1", "0")};
  const auto outcome = MakeOutcome(result, setting, seen);
  EXPECT_EQ(outcome->metrics.bottleneck, "network");
  EXPECT_EQ(outcome->metrics.bottleneck_next, "infer");
  EXPECT_NEAR(*outcome->metrics.bottleneck_next_images_per_s, 200, 1e-9);  // 8 in 40 ms
  EXPECT_NEAR(*outcome->metrics.bounds->network, 240 / 2.9, 1e-9);
}

TEST(MakeOutcome, TellsHowOftenAndHowLateTheRateOfAVaryingLinkWasSet) {
  const Setting setting{.architecture = Architecture::kDistributed};
  Observation::Link link{.to_server = 1000, .from_server = 1000, .gbit_per_s = 3};
  EXPECT_FALSE(MakeOutcome(MadeRun(), setting, {.link = link})->metrics.link->rate_changes);
  link.rate_changes = 7;
  link.latest_change_ms = 0.25;
  const auto outcome = MakeOutcome(MadeRun(), setting, {.link = link});
  EXPECT_EQ(outcome->metrics.link->rate_changes, 7);
  EXPECT_EQ(outcome->metrics.link->latest_change_ms, 0.25);
}

TEST(MakeOutcome, ReadsTheClaimThatWasAskedFor) {
  const Setting closed{.architecture = Architecture::kMicroservice, .load = ClosedLoad{}};
  const auto throughput = MakeOutcome(MadeLoad(), closed, {});
  ASSERT_TRUE(throughput) << throughput.error().message;
  EXPECT_EQ(throughput->metrics.throughput_images_per_s, 80.0);
  EXPECT_EQ(throughput->verdict.standing, Standing::kSuspect);
  EXPECT_EQ(throughput->verdict.causes.size(), 1u);
  EXPECT_EQ(throughput->metrics.response->intervals_95.count("p50"), 1u);
  const Setting open{.architecture = Architecture::kMicroservice, .load = OpenLoad{}};
  EXPECT_EQ(MakeOutcome(MadeLoad(), open, {})->verdict.standing, Standing::kInvalid);
}

TEST(MakeOutcome, TakesTheServersNodeFromItsOwnMonitor) {
  RunResult result = RemoteRun();
  Resources& server = result.server_resources.emplace();
  server.app_cpu = Range{.mean = 9};
  server.gpu_percent = Range{.mean = 50};
  const Setting setting{.architecture = Architecture::kDistributed};
  Observation seen;
  seen.there.emplace();
  seen.there->app_cpu = Range{.mean = 1.5};
  seen.there->client_cpu = Range{.mean = 1.75};
  const auto resources = MakeOutcome(result, setting, seen)->metrics.resources;
  EXPECT_EQ(resources->recogniser_cpu->mean, 1.5);
  EXPECT_EQ(resources->server_cpu->mean, 1.75);
  EXPECT_EQ(resources->gpu_percent->mean, 50);
  const Observation unseen{.there_absent = "no weir there"};
  EXPECT_EQ(MakeOutcome(result, setting, unseen)->metrics.absent.server_resources, "no weir there");
}

TEST(MakeOutcome, TakesPhasesBesideTheClientForNoStrangers) {
  RunResult run = MadeRun();
  run.resources.client_cpu = Range{1.9, 1.9, 1.9};
  run.resources.app_cpu = Range{0.2, 0.2, 0.2};
  run.resources.recogniser_cpu = Range{0.3, 0.3, 0.3};
  const auto alone = MakeOutcome(run, {}, {});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->verdict.standing, Standing::kSuspect);
  const auto beside =
      MakeOutcome(run, {}, {.beside = TrialMetrics::Beside{.feed = TrialMetrics::Phase{.per_s = 50}}});
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->verdict.standing, Standing::kValid);
  EXPECT_EQ(beside->metrics.beside->feed->per_s, 50);
}

TEST(MakeOutcome, FailsWhereNothingWasAnswered) {
  RunResult result = MadeRun();
  result.images = 0;
  EXPECT_EQ(MakeOutcome(result, {}, {}).error().code, ErrorCode::kIo);
  EXPECT_FALSE(MakeOutcome(LoadResult{}, {}, {}));
}

}  // namespace
}  // namespace weir::trial
