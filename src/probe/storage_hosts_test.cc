#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <thread>

#include "base/mutex.h"
#include "base/thread.h"
#include "probe/storage_train.h"

namespace weir::probe {
namespace {

constexpr int kWorld = 2;

// The meeting of hosts in one process: a thread tells each host of the steps that have come on all.
class Meeting {
 public:
  Meeting() {
    pump_ = StartThread("meeting", [this](const std::stop_token& stop) {
      const MutexLock lock(mutex_);
      while (!stop.stop_requested()) {
        changed_.WaitUntil(mutex_, SteadyClock().Now() + 1ms);
        Tell();
      }
    });
  }

  void Start(int rank, StepBarrier::Passed passed) {
    const MutexLock lock(mutex_);
    hosts_[rank].passed = std::move(passed);
  }
  void Arrive(int rank, int64_t step, bool last) {
    const MutexLock lock(mutex_);
    EXPECT_EQ(step, hosts_[rank].arrived);
    ++hosts_[rank].arrived;
    if (last && (!last_ || step < *last_)) last_ = step;
    changed_.NotifyAll();
  }
  void Finish(int rank) {
    const MutexLock lock(mutex_);
    hosts_[rank].passed = nullptr;
  }

 private:
  struct Host {
    StepBarrier::Passed passed;
    int64_t arrived = 0, told = 0;
  };

  void Tell() REQUIRES(mutex_) {
    const int64_t whole = std::min(hosts_[0].arrived, hosts_[1].arrived);
    for (Host& host : hosts_) {
      for (; host.told < whole && host.passed; ++host.told) {
        const auto passed = host.passed;
        const int64_t step = host.told;
        const bool last = last_ && *last_ <= step;
        mutex_.Unlock();
        passed(step, SteadyClock().Now(), last);
        mutex_.Lock();
      }
    }
  }

  Mutex mutex_;
  CondVar changed_;
  Host hosts_[kWorld] GUARDED_BY(mutex_);
  std::optional<int64_t> last_ GUARDED_BY(mutex_);
  std::jthread pump_;
};

class OneHost final : public StepBarrier {
 public:
  OneHost(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  void Start(Passed passed) override { meeting_.Start(rank_, std::move(passed)); }
  void Arrive(int64_t step, bool last) override { meeting_.Arrive(rank_, step, last); }
  void Finish() override { meeting_.Finish(rank_); }

 private:
  Meeting& meeting_;
  const int rank_;
};

struct ReadCounts {
  Mutex mutex;
  std::map<std::string, int> times GUARDED_BY(mutex);
};

class NotingReader final : public SampleReader {
 public:
  NotingReader(const Clock& clock, ReadCounts& seen, Duration takes)
      : clock_(clock), seen_(seen), takes_(takes) {}
  std::span<const std::byte> Contents(int, const StorageSample&) const override { return {}; }
  Result<ReadMoments> Read(const StorageSample& sample) override {
    {
      const MutexLock lock(seen_.mutex);
      ++seen_.times[sample.path];
    }
    const Instant now = clock_.Now(), end = now + takes_;
    return ReadMoments{now, now, now, end, end, end, sample.bytes, 0};
  }

 private:
  const Clock& clock_;
  ReadCounts& seen_;
  const Duration takes_;
};

std::vector<StorageSample> Samples(int count) {
  std::vector<StorageSample> samples;
  for (int i = 0; i < count; ++i) samples.push_back({std::to_string(i), 100});
  return samples;
}

TEST(TrainOnHosts, ReadsEachSampleOnceAnEpoch) {
  static const SteadyClock clock;
  Meeting meeting;
  ReadCounts seen;
  std::vector<std::future<Result<TrainResult>>> hosts;
  for (int rank = 0; rank < kWorld; ++rank)
    hosts.push_back(std::async(std::launch::async, [&, rank] {
      const TrainOptions options{.accelerators = 1,
                                 .batch = 5,
                                 .threads = 2,
                                 .depth = 1,
                                 .steps = 6,
                                 .share = {rank, kWorld, std::make_shared<OneHost>(meeting, rank)}};
      return Train(Samples(20), options, Seed(3),
                   [&] { return std::make_unique<NotingReader>(clock, seen, 0ms); }, clock, {});
    }));
  for (auto& host : hosts) {
    const auto result = host.get();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->steps, 6);
    EXPECT_EQ(result->set_samples, 20);
  }
  const MutexLock lock(seen.mutex);
  EXPECT_EQ(seen.times.size(), 20U);
  for (const auto& [name, times] : seen.times) EXPECT_EQ(times, 3) << name;  // 2 hosts x 6 steps x 5 samples
}

TEST(TrainOnHosts, AWaitForAnotherHostIsNamed) {
  static const SteadyClock clock;
  Meeting meeting;
  ReadCounts seen;
  const auto train = [&](int rank, Duration takes) {
    const TrainOptions options{.accelerators = 1,
                               .batch = 1,
                               .step = 1us,
                               .threads = 1,
                               .depth = 1,
                               .steps = 4,
                               .share = {rank, kWorld, std::make_shared<OneHost>(meeting, rank)}};
    return Train(Samples(8), options, Seed(3),
                 [&, takes] { return std::make_unique<NotingReader>(clock, seen, takes); }, clock, {});
  };
  auto other = std::async(std::launch::async, [&] { return train(1, 0ms); });
  const auto result = train(0, 0ms);
  ASSERT_TRUE(result);
  ASSERT_TRUE(other.get());
  EXPECT_EQ(result->stall_times.hosts.count(), 3);
  EXPECT_GT(result->stalls.hosts, Duration{});
}

TEST(TrainOnHosts, ARankOutsideTheWorldIsRefused) {
  const SteadyClock clock;
  ReadCounts seen;
  const auto result = Train(Samples(1), {.share = {.rank = 2, .world = 2}}, Seed(1),
                            [&] { return std::make_unique<NotingReader>(clock, seen, 0ms); }, clock, {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, testing::HasSubstr("host 2 of 2"));
}

// A disk whose read times have a known distribution: percentiles of the tally are within 1 % of it.
class SyntheticDisk final : public SampleReader {
 public:
  std::span<const std::byte> Contents(int, const StorageSample&) const override { return {}; }
  Result<ReadMoments> Read(const StorageSample& sample) override {
    // Read i of n takes q(i / n) of an exponential distribution with a mean of 250 us, open a tenth of it.
    const double share = (static_cast<double>(std::stoll(sample.path)) + 0.5) / 10'000;
    const Duration takes = FromSeconds(-250e-6 * std::log1p(-share));
    const Instant begin(1s), opened = begin + takes / 10, end = opened + takes;
    return ReadMoments{begin, opened, opened, end, end, end, sample.bytes, 0};
  }
};

TEST(Train, PercentilesOfASyntheticDiskAreWithinOnePercent) {
  static const SteadyClock clock;
  const auto result = Train(Samples(10'000), {.batch = 100, .threads = 1, .steps = 100}, Seed(1),
                            [] { return std::make_unique<SyntheticDisk>(); }, clock, {});
  ASSERT_TRUE(result);
  for (const double p : {0.5, 0.9, 0.99, 0.999}) {
    const double wanted = -250e3 * std::log1p(-p);
    const auto read = result->reads.read_ns.Quantile(p), open = result->reads.open_ns.Quantile(p);
    ASSERT_TRUE(read && open);
    EXPECT_NEAR(static_cast<double>(*read), wanted, 0.01 * wanted) << p;
    EXPECT_NEAR(static_cast<double>(*open), wanted / 10, 0.001 * wanted) << p;
  }
}

}  // namespace
}  // namespace weir::probe
