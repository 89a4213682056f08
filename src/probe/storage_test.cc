#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <future>
#include <set>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "probe/named_accelerators.h"
#include "probe/storage_profile.h"
#include "probe/storage_result.h"
#include "probe/storage_set.h"
#include "probe/storage_train.h"

namespace weir::probe {
namespace {

TEST(StorageProfile, DemandsWhatMlperfPublishes) {
  struct Published {
    const char* name;
    double samples_per_s, megabytes_per_s;
  };
  // Demand of one accelerator at full utilisation, from the configurations of v2 (A100, H100) and v3.
  constexpr Published kPublished[] = {
      {"unet3d-a100", 11.006, 1613}, {"unet3d-h100", 21.67, 3177},   {"unet3d-b200", 43.21, 6335},
      {"resnet50-a100", 920, 105.4}, {"resnet50-h100", 1786, 204.8}, {"cosmoflow-a100", 181.5, 513.3},
      {"cosmoflow-h100", 286, 808},  {"retinanet-a100", 76.2, 11.7}, {"retinanet-h100", 88.9, 13.65},
      {"retinanet-b200", 505, 163},  {"retinanet-mi355", 505, 163},
  };
  EXPECT_EQ(StorageProfiles().size(), std::size(kPublished));
  for (const Published& published : kPublished) {
    const auto profile = FindStorageProfile(published.name);
    ASSERT_TRUE(profile) << published.name;
    EXPECT_NEAR(SamplesPerSecond(*profile), published.samples_per_s, published.samples_per_s * 0.005)
        << published.name;
    EXPECT_NEAR(BytesPerSecond(*profile), published.megabytes_per_s * 1e6, published.megabytes_per_s * 5e3)
        << published.name;
  }
  EXPECT_EQ(FindStorageProfile("resnet50-x1").error().code, ErrorCode::kNotFound);
}

TEST(NamedAccelerators, HaveANumberAndPerhapsACard) {
  EXPECT_EQ(*ParseAccelerators("8"), (NamedAccelerators{8, 8, ""}));
  EXPECT_EQ(*ParseAccelerators("1:64"), (NamedAccelerators{1, 64, ""}));
  EXPECT_EQ(*ParseAccelerators("h100"), (NamedAccelerators{1, 1, "h100"}));
  EXPECT_EQ(*ParseAccelerators("1:64xH100"), (NamedAccelerators{1, 64, "H100"}));
  EXPECT_EQ(*ParseAccelerators("2xRTX x2"), (NamedAccelerators{2, 2, "RTX x2"}));
  EXPECT_EQ(*ParseAccelerators("mi355x"), (NamedAccelerators{1, 1, "mi355x"}));
  for (const char* wrong : {"", "0", "2:1", "1:", ":", "5000", "8x", "0xh100", "1:2:3", "a:b"})
    EXPECT_FALSE(ParseAccelerators(wrong)) << wrong;
}

TEST(NamedAccelerators, TakeThePublishedStepOfTheirCard) {
  EXPECT_EQ(FindCardProfile("resnet50", "H100")->name, "resnet50-h100");
  EXPECT_EQ(FindCardProfile("resnet50-a100", "a100")->name, "resnet50-a100");
  EXPECT_EQ(FindCardProfile("resnet50-a100", "h100").error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(FindCardProfile("resnet50", "b200").error().message,
              testing::HasSubstr("there are a100, h100"));
  EXPECT_THAT(FindCardProfile("bert", "h100").error().message, testing::HasSubstr("cosmoflow, retinanet"));
  const StorageProfile profile = *FindCardProfile("resnet50", "h100");
  EXPECT_EQ(StepOf(profile, 400, 1), 224ms);
  EXPECT_EQ(StepOf(profile, 400, 4), 56ms);
  EXPECT_EQ(CardText(profile), "a step of resnet50-h100 takes 224 ms for 400 samples (MLPerf Storage v2)");
}

TEST(CheckCard, NamesTheFlagThatIsMissing) {
  EXPECT_TRUE(CheckCard({}));
  EXPECT_TRUE(CheckCard({.card = "h100", .profile = "resnet50"}));
  EXPECT_TRUE(CheckCard({.card = "h100", .predictor = "p", .batch = 8}));
  EXPECT_THAT(CheckCard({.predictor = "p", .batch = 8}).error().message,
              testing::HasSubstr("without a card"));
  EXPECT_THAT(CheckCard({.card = "h100"}).error().message, testing::HasSubstr("--profile resnet50"));
  EXPECT_THAT(CheckCard({.card = "h100", .profile = "resnet50", .network = "n"}).error().message,
              testing::HasSubstr("give a file of weir fit"));
  EXPECT_THAT(CheckCard({.card = "h100", .predictor = "p"}).error().message, testing::HasSubstr("--batch"));
}

TEST(GlobalOrder, IsAPermutationEachEpochAndAnotherOneEachTime) {
  GlobalOrder order(100, Seed(7)), again(100, Seed(7));
  std::set<int64_t> first, second;
  int alike = 0;
  std::vector<int64_t> before;
  for (int64_t i = 0; i < 100; ++i) before.push_back(order.At(i));
  for (int64_t i = 0; i < 100; ++i) {
    first.insert(before[static_cast<size_t>(i)]);
    const int64_t now = order.At(100 + i);
    second.insert(now);
    alike += now == before[static_cast<size_t>(i)] ? 1 : 0;
    EXPECT_EQ(again.At(100 + i), now);
  }
  EXPECT_EQ(first.size(), 100U);
  EXPECT_EQ(second.size(), 100U);
  EXPECT_LT(alike, 20);
}

TEST(StepTimes, BeginsAStepAtItsDeadlineUnlessItsDataComeLater) {
  StepTimes times(3ms);
  const Instant zero(1s);
  EXPECT_EQ(times.Next(zero), zero + 3ms);
  EXPECT_EQ(times.Next(zero + 1ms), zero + 6ms);
  EXPECT_EQ(times.LastStall(), 0ms);
  EXPECT_EQ(times.Next(zero + 8ms), zero + 11ms);
  EXPECT_EQ(times.LastStall(), 2ms);
  EXPECT_EQ(times.LastDeadline(), zero + 6ms);
}

TEST(MadeSizes, HaveTheMeanAndDeviationAskedFor) {
  const auto sizes =
      MakeSizes({.samples = 20'000, .mean_bytes = 115'000, .deviation_bytes = 60'000}, Seed(3));
  double sum = 0, squares = 0;
  for (const uint64_t size : sizes) sum += static_cast<double>(size);
  const double mean = sum / 20'000;
  for (const uint64_t size : sizes)
    squares += (static_cast<double>(size) - mean) * (static_cast<double>(size) - mean);
  EXPECT_NEAR(mean, 115'000, 2'000);
  EXPECT_NEAR(std::sqrt(squares / 20'000), 60'000, 4'000);
}

class SetOnDisk : public testing::Test {
 protected:
  TemporaryFolder folder_ = *TemporaryFolder::Make("probe-test");
  SteadyClock clock_;
  std::stop_source stop_;
};

TEST_F(SetOnDisk, IsWrittenWholeAndRemovedWithItsHolder) {
  std::string made;
  {
    const auto set = MadeSet::Make(folder_.path(), {.samples = 5, .mean_bytes = 5000}, Seed(1), clock_, {});
    ASSERT_TRUE(set) << set.error().message;
    made = set->folder();
    EXPECT_EQ(set->samples().size(), 5U);
    for (const StorageSample& sample : set->samples()) {
      EXPECT_EQ(std::filesystem::file_size(sample.path), sample.bytes);
      EXPECT_EQ(UnwrittenBytes(sample.path).value_or(0), 0U);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST_F(SetOnDisk, IsNotBegunWithoutTheSpace) {
  const auto set = MadeSet::Make(folder_.path(), {.samples = 1000, .mean_bytes = 1e15}, Seed(1), clock_, {});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

// Writes a set as a probe on `host` would have left it: tag and one sample.
std::string LeaveSet(const std::string& path, const std::string& id, const HostIdentity& host) {
  const std::string stem = path + "/weir-probe." + id;
  EXPECT_TRUE(MakeFolders(stem + ".set/d0000"));
  EXPECT_TRUE(WriteFileWhole(stem + ".set/d0000/s00000000.bin", "x"));
  EXPECT_TRUE(WriteFileWhole(stem + ".owner", "weir probe storage\nhost " + host.host_name + "\nboot " +
                                                  host.boot_id + "\npid 1\n"));
  return stem + ".set";
}

TEST_F(SetOnDisk, OrphansOfThisHostAreRemoved) {
  const HostIdentity self{"here", "boot-1"};
  const std::string left = LeaveSet(folder_.path(), "0001", self);
  const Orphans orphans = RemoveOrphans(folder_.path(), self);
  EXPECT_THAT(orphans.removed, testing::ElementsAre(left));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SetOnDisk, SetsOfOtherHostsAndOfOtherBootsStayAndAreNamed) {
  const std::string other = LeaveSet(folder_.path(), "0001", {"there", "boot-1"});
  const std::string earlier = LeaveSet(folder_.path(), "0002", {"here", "boot-0"});
  const Orphans orphans = RemoveOrphans(folder_.path(), {"here", "boot-1"});
  EXPECT_THAT(orphans.foreign, testing::ElementsAre(other, earlier));
  EXPECT_TRUE(orphans.removed.empty());
  EXPECT_TRUE(std::filesystem::exists(other + "/d0000/s00000000.bin"));
  EXPECT_TRUE(std::filesystem::exists(earlier + "/d0000/s00000000.bin"));
}

TEST_F(SetOnDisk, ALiveSetIsNoOrphan) {
  const auto set = MadeSet::Make(folder_.path(), {.samples = 1, .mean_bytes = 10}, Seed(1), clock_, {});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_TRUE(RemoveOrphans(folder_.path(), ReadHostIdentity()).removed.empty());
  EXPECT_TRUE(std::filesystem::exists(set->samples()[0].path));
}

TEST_F(SetOnDisk, FoldersWithoutATagAndFilesOfOthersStay) {
  const HostIdentity self{"here", "boot-1"};
  const std::string untagged = folder_.path() + "/weir-probe.0003.set";
  ASSERT_TRUE(MakeFolders(untagged + "/d0000"));
  const std::string mixed = LeaveSet(folder_.path(), "0004", self);
  ASSERT_TRUE(WriteFileWhole(mixed + "/d0000/thesis.txt", "x"));
  const std::string elsewhere = folder_.path() + "/elsewhere";
  ASSERT_TRUE(MakeFolders(elsewhere + "/d0000"));
  ASSERT_TRUE(WriteFileWhole(elsewhere + "/d0000/s00000000.bin", "x"));
  const std::string linked = LeaveSet(folder_.path(), "0005", self);
  std::filesystem::remove_all(linked);
  std::filesystem::create_directory_symlink(elsewhere, linked);
  EXPECT_TRUE(RemoveOrphans(folder_.path(), self).removed.empty());
  EXPECT_TRUE(std::filesystem::exists(untagged));
  EXPECT_TRUE(std::filesystem::exists(mixed + "/d0000/thesis.txt"));
  EXPECT_TRUE(std::filesystem::exists(elsewhere + "/d0000/s00000000.bin"));
}

TEST_F(SetOnDisk, UnwrittenExtentsAndHolesAreSeen) {
  const std::string path = folder_.path() + "/hole";
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), 1 << 20), 0);
  const auto unwritten = UnwrittenBytes(path);
  if (!unwritten) GTEST_SKIP() << "this file system does not tell";
  EXPECT_EQ(*unwritten, 1U << 20);
}

TEST_F(SetOnDisk, AWarmSetIsAskedForItsCachedPartBySomeReads) {
  const SteadyClock clock;
  const StorageSample sample{.path = folder_.path() + "/file", .bytes = 5};
  ASSERT_TRUE(WriteFileWhole(sample.path, "bytes"));
  for (const bool cold : {true, false}) {
    const auto reader = SampleReader::Make({.cold = cold, .most_bytes = 5}, clock);
    ASSERT_TRUE(reader);
    int asked = 0;
    for (int i = 0; i < 16; ++i) {
      const auto read = (*reader)->Read(sample);
      ASSERT_TRUE(read);
      asked += read->asked_cache ? 1 : 0;
    }
    EXPECT_EQ(asked, cold ? 16 : 2);
  }
}

// Reads at once; names given fail.
class FakeReader final : public SampleReader {
 public:
  explicit FakeReader(const Clock& clock, std::string bad = "") : clock_(clock), bad_(std::move(bad)) {}
  std::span<const std::byte> Contents(int, const StorageSample&) const override { return {}; }
  Result<ReadMoments> Read(const StorageSample& sample) override {
    if (sample.path == bad_) return Fail(ErrorCode::kIo, sample.path + ": Input/output error");
    const Instant now = clock_.Now();
    return ReadMoments{now, now, now, now, now, now, sample.bytes, 0};
  }

 private:
  const Clock& clock_;
  const std::string bad_;
};

TEST(Train, ReadsEveryStepAndCountsTheSamplesThatFail) {
  const SteadyClock clock;
  std::vector<StorageSample> samples;
  for (int i = 0; i < 10; ++i) samples.push_back({std::to_string(i), 100});
  const auto result = Train(samples, {.accelerators = 2, .batch = 5, .threads = 2, .steps = 4}, Seed(1),
                            [&] { return std::make_unique<FakeReader>(clock, "3"); }, clock, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->steps, 4);
  EXPECT_EQ(result->reads.errors, 4);  // once an epoch
  EXPECT_THAT(result->reads.first_errors, testing::Each(testing::HasSubstr("Input/output error")));
  EXPECT_EQ(result->reads.open_ns.count(), 36);
  EXPECT_EQ(result->reads.cached_bytes, 0U);
}

TEST(Train, WithoutSamplesIsRefused) {
  const SteadyClock clock;
  EXPECT_FALSE(Train({}, {}, Seed(1), [&] { return std::make_unique<FakeReader>(clock); }, clock, {}));
}

// Blocks on the sample "3" until it is let go.
class HungReader final : public SampleReader {
 public:
  HungReader(const Clock& clock, std::shared_future<void> let_go)
      : clock_(clock), let_go_(std::move(let_go)) {}
  std::span<const std::byte> Contents(int, const StorageSample&) const override { return {}; }
  Result<ReadMoments> Read(const StorageSample& sample) override {
    if (sample.path == "3") let_go_.wait();
    const Instant now = clock_.Now();
    return ReadMoments{now, now, now, now, now, now, sample.bytes, 0};
  }

 private:
  const Clock& clock_;
  const std::shared_future<void> let_go_;
};

TEST(Train, NamesAReadThatHangsAndReadsTheRest) {
  static const SteadyClock clock;
  std::promise<void> gate;
  const std::shared_future<void> let_go = gate.get_future().share();
  std::vector<StorageSample> samples;
  for (int i = 0; i < 10; ++i) samples.push_back({std::to_string(i), 100});
  const auto result =
      Train(samples, {.accelerators = 1, .batch = 10, .threads = 1, .steps = 1, .timeout = 20ms}, Seed(1),
            [&] { return std::make_unique<HungReader>(clock, let_go); }, clock, {});
  gate.set_value();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->steps, 1);
  EXPECT_THAT(result->reads.hung, testing::ElementsAre("3"));
  EXPECT_EQ(result->reads.errors, 1);
  EXPECT_EQ(result->reads.open_ns.count(), 9);
}

TEST(FindMostFed, BisectsAndSaysWhereRepeatsDiffer) {
  int trials = 0;
  const auto found = FindMostFed(1, 64, [&](int n) -> Result<std::vector<bool>> {
    ++trials;
    return std::vector<bool>{n <= 20, n <= 21, n <= 23};
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 21);
  EXPECT_LE(found->low.value_or(0), 20);
  EXPECT_GE(found->high.value_or(0), 21);
  EXPECT_FALSE(found->more_may_be_fed);
  EXPECT_LE(trials, 7);
}

TEST(FindMostFed, SaysThatMoreMayBeFedAtTheUpperBound) {
  const auto found =
      FindMostFed(1, 8, [](int) -> Result<std::vector<bool>> { return std::vector<bool>{true}; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 8);
  EXPECT_TRUE(found->more_may_be_fed);
}

TrainFacts QuietFacts() {
  TrainFacts facts;
  TrainRun run;
  run.train.steps = 100;
  run.train.samples = 99;
  run.train.wall = 1s;
  run.train.compute = 1s;
  run.machine = {.cores = 4, .wall_s = 1, .foreign_cores = 0.01, .steal_percent = 0.0};
  facts.runs = {run, run, run};
  return facts;
}

std::vector<std::string> ReasonsOf(const StorageVerdict& verdict) {
  std::vector<std::string> reasons;
  for (const StorageCause& cause : verdict.causes) reasons.push_back(cause.reason);
  return reasons;
}

TEST(StorageJudge, BelievesAQuietRun) { EXPECT_EQ(Judge(QuietFacts()).standing, results::Standing::kValid); }

TEST(StorageJudge, LooksAtEveryRepeatAndAtTheMachine) {
  TrainFacts facts = QuietFacts();
  facts.runs[1].machine.foreign_cores = 1.5;
  facts.runs[2].machine.steal_percent = 3;
  EXPECT_THAT(ReasonsOf(Judge(facts)), testing::ElementsAre("steal", "foreign-cpu"));
  EXPECT_EQ(Judge(facts).standing, results::Standing::kSuspect);
  facts.runs[2].train.reads.AddError("x: Input/output error");
  EXPECT_THAT(ReasonsOf(Judge(facts)), testing::Contains("errors"));
  EXPECT_EQ(Judge(facts).standing, results::Standing::kInvalid);
}

TEST(StorageJudge, RefusesCachedAndUnwrittenBytesAndDoubtsUnknownOnes) {
  TrainFacts facts = QuietFacts();
  facts.runs[0].train.reads.asked_bytes = 100;
  facts.runs[0].train.reads.cached_bytes = 50;
  facts.set = {.bytes = 100, .samples = 1, .unwritten_bytes = 10};
  EXPECT_THAT(ReasonsOf(Judge(facts)), testing::ElementsAre("unwritten", "cached"));
  EXPECT_EQ(Judge(facts).standing, results::Standing::kInvalid);
  facts.wants_cold = false;
  facts.set = {.bytes = 100, .samples = 1, .unknown_files = 1};
  EXPECT_EQ(Judge(facts).standing, results::Standing::kSuspect);
}

TEST(StorageJudge, RefusesMemoryAndDoubtsUnequalStorages) {
  TrainFacts facts = QuietFacts();
  facts.wants_cold = false;  // as --direct has it
  facts.set.in_memory = "tmpfs";
  EXPECT_THAT(ReasonsOf(Judge(facts)), testing::Contains("memory"));
  EXPECT_EQ(Judge(facts).standing, results::Standing::kInvalid);
  facts = QuietFacts();
  facts.units = {
      {.path = "fast", .samples_per_s = {200, {}, {}}, .share = {}, .alone = Estimate{200, {}, {}}},
      {.path = "slow", .samples_per_s = {40, {}, {}}, .share = {}, .alone = Estimate{20, {}, {}}}};
  const auto verdict = Judge(facts);
  ASSERT_THAT(ReasonsOf(verdict), testing::ElementsAre("unequal-units"));
  EXPECT_THAT(verdict.causes[0].evidence,
              testing::HasSubstr("fast (200 samples/s), slow (20 samples/s); together 40 of 220 samples/s"));
}

TEST(StorageBottleneck, IsTheStorageWhereMoreThreadsReadNoFaster) {
  TrainFacts facts = QuietFacts();
  facts.runs.resize(1);
  facts.runs[0].train.wall = 10s;
  facts.runs[0].train.stalls = {};
  facts.runs[0].train.stalls.queue = 6s;
  facts.runs[0].train.stalls.read = 2s;
  EXPECT_EQ(FindBottleneck(facts).stage, "queue") << "not measured";
  facts.more_threads_gain = 1.8;
  EXPECT_EQ(FindBottleneck(facts).stage, "queue");
  facts.more_threads_gain = 1.02;
  EXPECT_EQ(FindBottleneck(facts).stage, "storage");
  EXPECT_NEAR(FindBottleneck(facts).share, 0.6, 1e-9);
}

TEST_F(SetOnDisk, AFileThatBecameShorterIsNamed) {
  const std::string path = folder_.path() + "/short";
  ASSERT_TRUE(WriteFileWhole(path, "1234"));
  for (const Access access : {Access::kPool, Access::kMmap}) {
    auto reader = SampleReader::Make({.access = access, .most_bytes = 100}, clock_);
    ASSERT_TRUE(reader);
    const auto read = (*reader)->Read({path, 100});
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, testing::HasSubstr("short"));
  }
}

}  // namespace
}  // namespace weir::probe
