#include "advise/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "results/network_probe_result.h"
#include "results/probe_result.h"

namespace weir::advise {
namespace {

using testing::Contains;
using testing::HasSubstr;

Profiles Measured() {
  Profiles profiles;
  profiles.storage_samples_per_s = Capacity{10'000, 9'000, 11'000, {"storage.json"}};
  profiles.storage_sample_bytes = 114'660;
  profiles.link_gbit_per_s = Capacity{10, 10, 10, {"network.json"}};
  profiles.prepared_images_per_s = Capacity{800, 780, 820, {"etl.json"}};
  profiles.model_images_per_s["resnet50"] = Capacity{2'000, 1'900, 2'100, {"run.json"}};
  return profiles;
}

Workload SixteenGpus() {
  return *ParseWorkload(
      "plan: lab\ntraining:\n  - {name: classifier, accelerators: 16, profile: resnet50-h100}\n"
      "accelerators_per_host: 8\n");
}

const results::PlanResult::Resource& Of(const results::PlanResult& plan, const std::string& name) {
  return *std::ranges::find(plan.resources, name, &results::PlanResult::Resource::resource);
}

TEST(MakePlan, CountsUnitsFromDemandAndCapacity) {
  const auto plan = MakePlan(SixteenGpus(), Measured());
  ASSERT_TRUE(plan) << plan.error().message;
  // 16 x 1,785.7 samples/s = 28,571; one unit gives 10,000 and may be 80 % busy: 3.57, so 4.
  EXPECT_EQ(Of(*plan, "storage").count, 4);
  EXPECT_EQ(Of(*plan, "storage").needed.low, 4);   // 11,000 a unit: 3.25
  EXPECT_EQ(Of(*plan, "storage").needed.high, 4);  // 9,000 a unit: 3.97
  EXPECT_NEAR(Of(*plan, "storage").busy_percent, 71.4, 0.1);
  // 3.276 GB/s over 1.25 GB/s links at 80 %: 3.28, so 4.
  EXPECT_EQ(Of(*plan, "link").count, 4);
  EXPECT_EQ(Of(*plan, "accelerator").count, 2);
  EXPECT_NEAR(Of(*plan, "accelerator").scale.value, 1, 1e-9);  // whole hosts of 8 accelerators, no more
  EXPECT_EQ(plan->bottleneck, "accelerator");
  EXPECT_TRUE(plan->met);
  EXPECT_THAT(Of(*plan, "storage").works[0].arithmetic, HasSubstr("16 accelerators x 1786 samples/s"));
}

TEST(MakePlan, SaysWhatDoublingBuys) {
  Workload workload = SixteenGpus();
  workload.storage = 1;
  workload.links = 8;
  workload.hosts = 4;
  const auto plan = MakePlan(workload, Measured());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bottleneck, "storage");
  EXPECT_FALSE(plan->met);
  EXPECT_NEAR(plan->scale.value, 0.8 * 10'000 / 28'571, 1e-4);
  EXPECT_NEAR(plan->scale.low, 0.8 * 9'000 / 28'571, 1e-4);
  for (const auto& doubling : plan->doubling)
    EXPECT_NEAR(doubling.gain, doubling.resource == "storage" ? 2 : 1, 1e-9) << doubling.resource;
}

TEST(MakePlan, AddedUnitsThatGiveLessNeedMore) {
  Profiles profiles = Measured();
  profiles.storage_share = Capacity{0.5, 0.5, 0.5, {}};
  const auto plan = MakePlan(SixteenGpus(), profiles);
  ASSERT_TRUE(plan);
  EXPECT_EQ(Of(*plan, "storage").count, 7);  // 1 + 2.57 / 0.5 = 6.14
}

TEST(MakePlan, WorksShareAResource) {
  const auto workload = ParseWorkload(
      "inference:\n  - {name: gate, streams: 40, frames_per_s: 25, frame_bytes: 110000}\n"
      "preparation:\n  - {name: daily, images: 14400000, image_bytes: 110000, within_hours: 8}\n");
  ASSERT_TRUE(workload) << workload.error().message;
  const auto plan = MakePlan(*workload, Measured());
  ASSERT_TRUE(plan) << plan.error().message;
  // 1,000 frames/s of 2,000 and 500 pictures/s of 800: 1.125 hosts, at 80 % 1.41.
  EXPECT_EQ(Of(*plan, "host").count, 2);
  EXPECT_EQ(Of(*plan, "host").works.size(), 2U);
  // 500 pictures/s are read, and as many bytes are written, at 10,000 x 114,660 bytes/s.
  ASSERT_EQ(Of(*plan, "storage").works.size(), 2U);
  EXPECT_NEAR(Of(*plan, "storage").works[1].units.value, 500 * 110e3 / (10'000 * 114'660.0), 1e-9);
  EXPECT_EQ(Of(*plan, "link").works.size(), 3U);
  EXPECT_THAT(plan->assumptions, Contains(HasSubstr("no write was measured")));
}

TEST(MakePlan, CountsWhatAPreparationWrites) {
  auto workload = *ParseWorkload("preparation:\n  - {name: d, images: 8640000, image_bytes: 100000}\n");
  Profiles profiles = Measured();
  profiles.prepared_bytes_written = 0.25;
  auto plan = *MakePlan(workload, profiles);
  EXPECT_NEAR(Of(plan, "link").works[1].units.value, 100 * 25'000 / 1.25e9, 1e-12);
  workload.preparation[0].written_bytes = 200'000;
  plan = *MakePlan(workload, profiles);
  EXPECT_NEAR(Of(plan, "link").works[1].units.value, 100 * 200'000 / 1.25e9, 1e-12);
}

TEST(MakePlan, WithoutGivenCountsTheAnswerIsTheNumber) {
  Profiles profiles = Measured();
  profiles.storage_samples_per_s->low = 5'000;  // the low end would need 8 units
  Workload workload = SixteenGpus();
  const auto counted = *MakePlan(workload, profiles);
  EXPECT_TRUE(counted.met);
  EXPECT_EQ(Of(counted, "storage").needed.high, 8);
  EXPECT_THAT(PlanText(TextStyle(), counted), HasSubstr("storage needed 4 (4 to 8); 71 % busy"));
  workload.storage = 4;
  const auto given = *MakePlan(workload, profiles);
  EXPECT_FALSE(given.met);
  EXPECT_THAT(PlanText(TextStyle(), given),
              HasSubstr("needed 4 (4 to 8), given 4: enough by the mean, too few at the low end"));
  workload.storage = 3;
  EXPECT_THAT(PlanText(TextStyle(), *MakePlan(workload, profiles)), HasSubstr("given 3: too few"));
  workload.storage = 8;
  EXPECT_TRUE(MakePlan(workload, profiles)->met);
}

TEST(MakePlan, NamesProfilesOfASingleMeasurement) {
  Profiles profiles = Measured();
  profiles.link_gbit_per_s->once = true;
  EXPECT_THAT(MakePlan(SixteenGpus(), profiles)->assumptions,
              Contains(HasSubstr("network.json holds one measurement")));
}

TEST(MakePlan, NamesTheMeasurementThatIsMissing) {
  const auto plan = MakePlan(SixteenGpus(), {});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("measure it with weir probe storage"));
  Profiles spoiled;
  spoiled.notes.push_back("bad.json is INVALID and was passed over");
  EXPECT_THAT(MakePlan(SixteenGpus(), spoiled).error().message, HasSubstr("needs (bad.json is INVALID"));
  const auto inference = ParseWorkload("inference:\n  - {name: g, streams: 1, frame_bytes: 1, model: vgg}\n");
  const auto unknown = MakePlan(*inference, Measured());
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("no model \"vgg\"; they have resnet50"));
}

TEST(MakePlan, ComesBackFromItsJson) {
  const auto plan = MakePlan(SixteenGpus(), Measured());
  ASSERT_TRUE(plan);
  EXPECT_EQ(results::PlanResult::FromJson(plan->ToJson()).value(), *plan);
  EXPECT_THAT(PlanText(TextStyle(), *plan),
              HasSubstr("bottleneck accelerator: the plan carries 1.00 times the workload"));
}

TEST(ParseWorkload, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(ParseWorkload("trainings: []\n").error().message, HasSubstr("training"));
  EXPECT_THAT(ParseWorkload("plan: x\n").error().message, HasSubstr("names no work"));
  EXPECT_THAT(ParseWorkload("training:\n  - {accelerators: 2}\n").error().message, HasSubstr("name"));
  EXPECT_THAT(ParseWorkload("training: 3\n").error().message, HasSubstr("no list"));
  EXPECT_THAT(
      ParseWorkload("training:\n  - {name: a, accelerators: 0, profile: resnet50-h100}\n").error().message,
      HasSubstr("from 1"));
}

TEST(ReadProfiles, TakesTheRunsOfAProbeAndPassesOverInvalidOnes) {
  const auto folder = TemporaryFolder::Make("plan-test");
  results::StorageProbeResult storage{.phase = "train", .train = results::StorageProbeResult::Train{}};
  storage.train->sample_bytes = 1000;
  storage.train->accelerators.more_may_be_fed = true;
  for (const auto& [accelerators, rate] : {std::pair{1, 500.0}, {2, 900.0}, {2, 1100.0}})
    storage.train->runs.push_back({.accelerators = accelerators,
                                   .utilisation_percent = {},
                                   .samples_per_s = rate,
                                   .cached_share_by_epoch = {},
                                   .machine = {}});
  storage.verdict.verdict = "SUSPECT";
  storage.verdict.reasons = {{.reason = "foreign-cpu", .evidence = "other processes used 1 of 2 cores"}};
  ASSERT_TRUE(WriteFileWhole(folder->path() + "/good.json", DumpJson(storage.ToJson())));
  storage.train->runs[2].samples_per_s = 1e9;
  storage.verdict.verdict = "INVALID";
  ASSERT_TRUE(WriteFileWhole(folder->path() + "/bad.json", DumpJson(storage.ToJson())));
  const auto profiles = ReadProfiles(folder->path());
  ASSERT_TRUE(profiles) << profiles.error().message;
  EXPECT_NEAR(profiles->storage_samples_per_s->value, 1000, 1e-9);
  EXPECT_LT(profiles->storage_samples_per_s->low, 1000);
  EXPECT_TRUE(profiles->storage_may_give_more);
  EXPECT_THAT(profiles->notes, Contains(HasSubstr("bad.json is INVALID")));
  EXPECT_THAT(profiles->notes,
              Contains(HasSubstr("good.json is SUSPECT: other processes used 1 of 2 cores")));
}

TEST(ReadProfiles, TakesTheRateOfALink) {
  const auto folder = TemporaryFolder::Make("weir-profiles");
  ASSERT_TRUE(folder);
  results::NetworkProbeResult network;
  network.verdict = "VALID";
  network.throughput_gbit_per_s = 9.4;
  ASSERT_TRUE(WriteFileWhole(folder->path() + "/network.json", DumpJson(network.ToJson())));
  const auto profiles = ReadProfiles(folder->path());
  ASSERT_TRUE(profiles) << profiles.error().message;
  ASSERT_TRUE(profiles->link_gbit_per_s);
  EXPECT_DOUBLE_EQ(profiles->link_gbit_per_s->value, 9.4);
}

TEST(ReadProfiles, RefusesOtherFiles) {
  const auto folder = TemporaryFolder::Make("plan-test");
  EXPECT_THAT(ReadProfiles(folder->path()).error().message, HasSubstr("no *.json"));
  ASSERT_TRUE(WriteFileWhole(folder->path() + "/x.json", "{}"));
  EXPECT_THAT(ReadProfiles(folder->path()).error().message, HasSubstr("x.json: no result of weir probe"));
}

}  // namespace
}  // namespace weir::advise
