#include "probe/storage_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "probe/host_speed.h"
#include "probe/storage_phases.h"

namespace weir::probe {
namespace {

// Reads at once; the sample named "bad" fails.
class InstantReader final : public SampleReader {
 public:
  explicit InstantReader(const Clock& clock) : clock_(clock) {}
  std::span<const std::byte> Contents(int, const StorageSample&) const override { return {}; }
  Result<ReadMoments> Read(const StorageSample& sample) override {
    if (sample.path == "bad") return Fail(ErrorCode::kIo, "bad: Input/output error");
    const Instant now = clock_.Now();
    return ReadMoments{now, now, now, now, now, now, sample.bytes, 0};
  }

 private:
  const Clock& clock_;
};

TEST(FrameSample, IsAFunctionOfTheSeedAndStaysWithinTheFile) {
  const std::vector<StorageSample> samples = {{"a", 10'000}, {"b", 300}, {"c", 5'000}};
  const InferOptions options{.record_bytes = 1000};
  std::set<std::string> files;
  std::set<uint64_t> offsets;
  for (int64_t frame = 0; frame < 200; ++frame) {
    const StorageSample sample = FrameSample(samples, options, Seed(3), frame);
    const StorageSample again = FrameSample(samples, options, Seed(3), frame);
    EXPECT_EQ(sample.path, again.path);
    EXPECT_EQ(sample.offset, again.offset);
    const uint64_t size = sample.path == "a" ? 10'000 : sample.path == "b" ? 300 : 5'000;
    EXPECT_LE(sample.offset + sample.bytes, size);
    EXPECT_EQ(sample.bytes, std::min<uint64_t>(size, 1000));
    files.insert(sample.path);
    offsets.insert(sample.offset);
  }
  EXPECT_EQ(files.size(), 3U);
  EXPECT_GT(offsets.size(), 50U);
}

TEST(Infer, AnswersEveryPlannedFrameAndCountsThoseThatFail) {
  static const SteadyClock clock;
  const InferOptions options{
      .streams = 2, .frames_per_s = 500, .deadline = 10s, .threads = 2, .limit = 50ms, .timeout = 10s};
  const auto make = [&] { return std::make_unique<InstantReader>(clock); };
  const auto good = Infer({{"a", 100}}, options, Seed(1), make, clock, {});
  ASSERT_TRUE(good);
  EXPECT_EQ(good->planned, 50);
  EXPECT_EQ(good->answered, 50);
  EXPECT_EQ(good->in_time, 50);
  EXPECT_EQ(good->reads.bytes, 5000U);
  const auto bad = Infer({{"bad", 100}}, options, Seed(1), make, clock, {});
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->answered, 0);
  EXPECT_EQ(bad->reads.errors, 50);
  EXPECT_FALSE(Infer({}, options, Seed(1), make, clock, {}));
}

TEST(Infer, ABottleneckIsTheLongestStage) {
  InferRun run;
  run.result.response_ns.Add(900);
  run.result.service_ns.Add(800);
  run.result.reads.open_ns.Add(500);
  run.result.reads.read_ns.Add(200);
  run.result.reads.close_ns.Add(100);
  EXPECT_EQ(InferBottleneck({run}), "open");
  run.result.response_ns.Add(5000);
  EXPECT_EQ(InferBottleneck({run}), "queue");
}

class StreamOnDisk : public testing::Test {
 protected:
  TemporaryFolder folder_ = *TemporaryFolder::Make("probe-stream-test");
  SteadyClock clock_;
};

TEST_F(StreamOnDisk, ReadsFilesInBlocksAndNamesTheOneThatIsShort) {
  const std::string path = folder_.path() + "/file";
  ASSERT_TRUE(WriteFileWhole(path, std::string(10'000, 'x')));
  const StreamOptions options{.block_bytes = 4096, .threads = 1, .limit = 20ms};
  const auto whole = Stream({{path, 10'000}}, options, clock_, {});
  ASSERT_TRUE(whole);
  ASSERT_GT(whole->reads.open_ns.count(), 0);
  EXPECT_EQ(whole->reads.read_ns.count(), 3 * whole->reads.open_ns.count());
  EXPECT_EQ(whole->reads.bytes, 10'000U * static_cast<uint64_t>(whole->reads.open_ns.count()));
  EXPECT_EQ(whole->reads.errors, 0);
  const auto cut = Stream({{path, 20'000}}, options, clock_, {});
  ASSERT_TRUE(cut);
  EXPECT_GT(cut->reads.errors, 0);
  EXPECT_THAT(cut->reads.first_errors[0], testing::HasSubstr(path));
}

TEST_F(StreamOnDisk, RefusesBlocksThatAreNoPages) {
  EXPECT_EQ(Stream({{"a", 1}}, {.block_bytes = 1000}, clock_, {}).error().code, ErrorCode::kInvalidArgument);
}

TEST(HostSpeed, EveryMeasurementGivesAPositiveFigure) {
  const SteadyClock clock;
  const auto speed = MeasureHostSpeed({.budget = 10ms, .threads = 1}, clock);
  ASSERT_TRUE(speed) << speed.error().message;
  EXPECT_GT(speed->f32_multiply_adds.one_thread, 1e6);
  EXPECT_GT(speed->memory_read_bytes.one_thread, 1e6);
  EXPECT_GT(speed->memory_copy_bytes.all_threads, 1e6);
  EXPECT_GT(speed->clock_read_ns, 0);
  EXPECT_GT(speed->system_call_ns, 0);
  EXPECT_GT(speed->timer_late_us, 0);
  EXPECT_GT(speed->wake_up_us, 0);
  EXPECT_GT(speed->loopback_us, 0);
}

}  // namespace
}  // namespace weir::probe
