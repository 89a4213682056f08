#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "probe/storage_profile.h"
#include "probe/storage_set.h"
#include "probe/storage_train.h"

namespace weir::probe {
namespace {

TEST(StorageProfile, DemandsWhatMlperfPublishes) {
  const auto resnet = FindStorageProfile("resnet50-h100");
  ASSERT_TRUE(resnet);
  EXPECT_NEAR(SamplesPerSecond(*resnet), 1786, 1786 * 0.005);
  EXPECT_NEAR(BytesPerSecond(*resnet), 204.8e6, 204.8e6 * 0.005);
  const auto unet = FindStorageProfile("unet3d-h100");
  ASSERT_TRUE(unet);
  EXPECT_NEAR(BytesPerSecond(*unet), 3177e6, 3177e6 * 0.005);
  const auto retinanet = FindStorageProfile("retinanet-b200");
  ASSERT_TRUE(retinanet);
  EXPECT_NEAR(SamplesPerSecond(*retinanet), 505, 505 * 0.005);
  EXPECT_EQ(FindStorageProfile("resnet50-x1").error().code, ErrorCode::kNotFound);
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

TEST_F(SetOnDisk, OfAKilledRunIsRemovedButNotWhatOthersPutThere) {
  const std::string left = folder_.path() + "/weir-probe.2147483646.tmp";  // no process has this number
  ASSERT_TRUE(MakeFolders(left + "/d0000"));
  ASSERT_TRUE(WriteFileWhole(left + "/weir-probe-owner", ""));
  ASSERT_TRUE(WriteFileWhole(left + "/d0000/s00000000.bin", "x"));
  const std::string other = folder_.path() + "/weir-probe.2147483645.tmp";  // without the owner's mark
  ASSERT_TRUE(MakeFolders(other));
  const std::string mixed = folder_.path() + "/weir-probe.2147483644.tmp";
  ASSERT_TRUE(MakeFolders(mixed + "/d0000"));
  ASSERT_TRUE(WriteFileWhole(mixed + "/weir-probe-owner", ""));
  ASSERT_TRUE(WriteFileWhole(mixed + "/d0000/thesis.txt", "x"));
  RemoveLeftSets(folder_.path());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(std::filesystem::exists(mixed + "/d0000/thesis.txt"));
}

TEST_F(SetOnDisk, UnwrittenExtentsAndHolesAreSeen) {
  const std::string path = folder_.path() + "/hole";
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), 1 << 20), 0);
  const auto unwritten = UnwrittenBytes(path);
  if (!unwritten) GTEST_SKIP() << "this file system does not tell";
  EXPECT_EQ(*unwritten, 1U << 20);
}

// Reads at once; names given fail.
class FakeReader final : public SampleReader {
 public:
  explicit FakeReader(const Clock& clock, std::string bad = "") : clock_(clock), bad_(std::move(bad)) {}
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
  EXPECT_EQ(result->errors, 4);  // once an epoch
  EXPECT_THAT(result->first_errors, testing::Each(testing::HasSubstr("Input/output error")));
  EXPECT_EQ(result->open_ns.count(), 36);
  EXPECT_EQ(result->cached_bytes, 0U);
}

TEST(Train, WithoutSamplesIsRefused) {
  const SteadyClock clock;
  EXPECT_FALSE(Train({}, {}, Seed(1), [&] { return std::make_unique<FakeReader>(clock); }, clock, {}));
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
