#include "feed/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "feed/bench.h"
#include "image/testing/pictures.h"

namespace weir::feed {
namespace {

using ::testing::HasSubstr;

// Small raw records whose pixels tell their number; those in `bad` cannot be read.
class FakeSource final : public Source {
 public:
  explicit FakeSource(int64_t size, std::set<int64_t> bad = {}) : size_(size), bad_(std::move(bad)) {}

  int64_t size() const override { return size_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int32_t Label(int64_t sample) const override { return static_cast<int32_t>(sample % 2); }
  std::string Name(int64_t sample) const override { return "sample " + std::to_string(sample); }
  image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const override {
    if (bad_.contains(sample))
      return std::unexpected(image::Reject{image::RejectReason::kDamaged, "planted"});
    const std::span<std::byte> into = buffer.Get(raw()->bytes());
    for (size_t i = 0; i < into.size(); ++i)
      into[i] = static_cast<std::byte>(static_cast<size_t>(sample) * 7 + i);
    return into;
  }
  std::optional<RawShape> raw() const override { return RawShape{8, 6, 3}; }
  const std::string& hash() const override { return hash_; }

 private:
  const int64_t size_;
  const std::set<int64_t> bad_;
  const std::vector<std::string> classes_{"even", "odd"};
  const std::string hash_ = std::string(32, '1');
};

FeedOptions Small(int64_t batch) {
  FeedOptions options;
  options.slice.batch = batch;
  options.augment.width = 4;
  options.augment.height = 4;
  options.seed = 11;
  return options;
}

std::unique_ptr<Feed> Open(std::shared_ptr<const Source> source, const FeedOptions& options) {
  static const SteadyClock clock;
  auto feed = Feed::Open(std::move(source), options, clock);
  EXPECT_TRUE(feed) << feed.error().message;
  return *std::move(feed);
}

// A batch as its consumer has it.
struct Delivered {
  int64_t epoch = 0, position = 0, count = 0;
  std::vector<int64_t> samples, labels;
  std::string rows;
  bool operator==(const Delivered&) const = default;
};
Delivered See(const Batch& batch) {
  return {batch.epoch,  batch.position,
          batch.count,  batch.samples,
          batch.labels, {reinterpret_cast<const char*>(batch.rows->data()), batch.rows->size()}};
}

std::vector<Delivered> Epoch(Feed& feed) {
  std::vector<Delivered> seen;
  while (true) {
    const auto batch = feed.Next();
    EXPECT_TRUE(batch) << batch.error().message;
    if (!batch || !*batch) return seen;
    seen.push_back(See(**batch));
  }
}

std::vector<Delivered> Epochs(Feed& feed, int epochs) {
  std::vector<Delivered> all;
  for (int i = 0; i < epochs; ++i) {
    for (Delivered& seen : Epoch(feed)) all.push_back(std::move(seen));
  }
  return all;
}

TEST(Feed, GivesTheSameForAnyThreadsAndPrefetch) {
  const auto source = std::make_shared<FakeSource>(101, std::set<int64_t>{3, 50});
  for (const BadPolicy bad : {BadPolicy::kReplace, BadPolicy::kSkip}) {
    FeedOptions options = Small(8);
    options.bad = bad;
    options.slice.ends = Ends::kPad;
    const auto expected = Epochs(*Open(source, options), 3);
    ASSERT_EQ(expected.size(), 39u);
    for (const int threads : {2, 7}) {
      for (const int prefetch : {1, 8}) {
        options.threads = threads;
        options.prefetch = prefetch;
        EXPECT_TRUE(Epochs(*Open(source, options), 3) == expected) << threads << " " << prefetch;
      }
    }
  }
}

TEST(Feed, GivesEverySampleOnceWithItsLabel) {
  FeedOptions options = Small(7);
  options.slice.ends = Ends::kPad;
  const auto seen = Epoch(*Open(std::make_shared<FakeSource>(30), options));
  std::set<int64_t> samples;
  for (const Delivered& batch : seen) {
    for (size_t row = 0; row < batch.samples.size(); ++row) {
      if (batch.samples[row] < 0) {
        EXPECT_EQ(batch.labels[row], -1);
        EXPECT_GE(static_cast<int64_t>(row), batch.count);
      } else {
        EXPECT_TRUE(samples.insert(batch.samples[row]).second);
        EXPECT_EQ(batch.labels[row], batch.samples[row] % 2);
      }
    }
  }
  EXPECT_EQ(samples.size(), 30u);
  EXPECT_EQ(seen.back().count, 2);
  EXPECT_EQ(seen.back().rows.substr(2 * 48), std::string(5 * 48, '\0'));
}

TEST(Feed, OfSeveralRanksMergesToOne) {
  const auto source = std::make_shared<FakeSource>(70);
  FeedOptions options = Small(16);
  options.slice.ends = Ends::kWrap;
  const auto one = Epochs(*Open(source, options), 2);
  for (const int64_t world : {2, 4}) {
    options.slice.world = world;
    options.slice.batch = 16 / world;
    std::vector<std::vector<Delivered>> ranks;
    for (options.slice.rank = 0; options.slice.rank < world; ++options.slice.rank)
      ranks.push_back(Epochs(*Open(source, options), 2));
    for (size_t b = 0; b < one.size(); ++b) {
      Delivered merged = ranks[0][b];
      for (size_t rank = 1; rank < ranks.size(); ++rank) {
        const Delivered& next = ranks[rank][b];
        merged.count += next.count;
        merged.samples.insert(merged.samples.end(), next.samples.begin(), next.samples.end());
        merged.labels.insert(merged.labels.end(), next.labels.begin(), next.labels.end());
        merged.rows += next.rows;
      }
      EXPECT_TRUE(merged == one[b]) << b;
    }
  }
}

TEST(Feed, ResumesWhereAnyStateSays) {
  const auto source = std::make_shared<FakeSource>(60, std::set<int64_t>{1});
  FeedOptions options = Small(8);
  const auto all = Epochs(*Open(source, options), 3);
  for (size_t stop = 0; stop < all.size(); ++stop) {
    const auto first = Open(source, options);
    std::vector<Delivered> seen;
    while (seen.size() < stop) {
      const auto batch = first->Next();
      ASSERT_TRUE(batch);
      if (*batch) seen.push_back(See(**batch));
    }
    const std::string text = FormatState(first->state());
    options.threads = 1 + static_cast<int>(stop % 3);
    options.prefetch = 1 + static_cast<int>(stop % 5);
    const auto second = Open(source, options);
    ASSERT_TRUE(second->SetState(*ParseState(text)));
    while (seen.size() < all.size()) {
      const auto batch = second->Next();
      ASSERT_TRUE(batch);
      if (*batch) seen.push_back(See(**batch));
    }
    EXPECT_TRUE(seen == all) << stop;
  }
}

TEST(Feed, SlicesTheRestForAnotherWorld) {
  const auto source = std::make_shared<FakeSource>(64);
  FeedOptions options = Small(8);
  const auto all = Epoch(*Open(source, options));
  const auto first = Open(source, options);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(first->Next());
  options.slice = {.batch = 8, .rank = 1, .world = 2, .ends = Ends::kDrop};
  const auto second = Open(source, options);
  ASSERT_TRUE(second->SetState(first->state()));
  const auto rest = Epoch(*second);
  ASSERT_EQ(rest.size(), 3u);
  EXPECT_EQ(rest[0].samples, all[3].samples);
  EXPECT_EQ(rest[2].samples, all[7].samples);
}

TEST(FeedBench, PlaysAWholeEpochFromTheEndOfOne) {
  static const SteadyClock clock;
  const auto feed = Open(std::make_shared<FakeSource>(64), Small(8));
  FeedState state = feed->state();
  state.epoch = 3;
  state.position = 64;
  ASSERT_TRUE(feed->SetState(state));
  const auto figures =
      RunBench(*feed, {.duration = {}, .epochs = 1, .hash = true}, clock, {}, [](double, int64_t) {});
  ASSERT_TRUE(figures) << figures.error().message;
  EXPECT_EQ(figures->counters.samples, 64);
  EXPECT_EQ(figures->hashes.size(), 1u);
  EXPECT_EQ(feed->state().epoch, 5);
}

TEST(Feed, RefusesAStateOfAnotherFeed) {
  const auto source = std::make_shared<FakeSource>(64);
  FeedOptions options = Small(8);
  const auto feed = Open(source, options);
  const FeedState state = feed->state();
  options.seed = 12;
  EXPECT_THAT(Open(source, options)->SetState(state).error().message, HasSubstr("seed 11"));
  options = Small(8);
  options.augment.flip = 0.1;
  EXPECT_THAT(Open(source, options)->SetState(state).error().message, HasSubstr("augmentation"));
  options = Small(8);
  options.bad = BadPolicy::kSkip;
  EXPECT_FALSE(Open(source, options)->SetState(state));
}

TEST(Feed, GoesToAnEpoch) {
  const auto source = std::make_shared<FakeSource>(64);
  const auto all = Epochs(*Open(source, Small(8)), 3);
  const auto feed = Open(source, Small(8));
  ASSERT_TRUE(feed->Next());
  ASSERT_TRUE(feed->SetEpoch(2));
  const auto last = Epoch(*feed);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), all.begin() + 16, all.end()));
  EXPECT_EQ(feed->state().epoch, 3);
  EXPECT_TRUE(feed->SetEpoch(3));
  EXPECT_FALSE(feed->SetEpoch(-1));
}

TEST(Feed, ReplacesSkipsOrStopsAtABadSample) {
  const auto source = std::make_shared<FakeSource>(40, std::set<int64_t>{5, 6});
  FeedOptions options = Small(8);
  options.threads = 3;
  const auto replaced = Open(source, options);
  int64_t rows = 0;
  for (const Delivered& seen : Epoch(*replaced)) {
    rows += seen.count;
    for (const int64_t sample : seen.samples) EXPECT_TRUE(sample >= 0 && sample != 5 && sample != 6);
  }
  EXPECT_EQ(rows, 40);
  EXPECT_GE(replaced->counters().bad.at("damaged"), 2);

  options.bad = BadPolicy::kSkip;
  const auto skipped = Open(source, options);
  rows = 0;
  for (const Delivered& seen : Epoch(*skipped)) rows += seen.count;
  EXPECT_EQ(rows, 38);
  EXPECT_EQ(skipped->counters().bad.at("damaged"), 2);
  ASSERT_EQ(skipped->bad_samples().size(), 2u);
  EXPECT_EQ(skipped->bad_samples()[0].sample + skipped->bad_samples()[1].sample, 11);

  options.bad = BadPolicy::kStop;
  const auto stopped = Open(source, options);
  Result<std::optional<Batch>> batch = stopped->Next();
  int64_t before = 0;
  for (; batch && *batch; batch = stopped->Next()) ++before;
  ASSERT_FALSE(batch);
  EXPECT_THAT(batch.error().message, HasSubstr(": damaged: planted"));
  EXPECT_EQ(stopped->state().position, before * 8);
  const auto again = stopped->Next();  // the same error, and no batch is lost
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error(), batch.error());
}

TEST(Feed, IsReadyWhereNextNeitherWaitsNorMovesRows) {
  static const SteadyClock clock;
  FeedOptions options = Small(8);
  const auto feed = Open(std::make_shared<FakeSource>(16), options);
  EXPECT_FALSE(feed->IsReady());  // no thread has begun
  for (int batch = 0; batch < 2; ++batch) {
    ASSERT_TRUE(feed->WaitUntil(clock.Now() + 60s));
    EXPECT_TRUE(feed->IsReady());
    ASSERT_TRUE(feed->Next().value());
  }
  EXPECT_TRUE(feed->IsReady());  // for the end of the epoch
  EXPECT_FALSE(feed->Next().value());
  options.bad = BadPolicy::kSkip;
  const auto skips = Open(std::make_shared<FakeSource>(8, std::set<int64_t>{3}), options);
  ASSERT_TRUE(skips->WaitUntil(clock.Now() + 60s));
  EXPECT_FALSE(skips->IsReady());  // Next moves the rows behind the bad one
}

TEST(Feed, EndsWhereEverySampleIsBad) {
  std::set<int64_t> every;
  for (int64_t i = 0; i < 20; ++i) every.insert(i);
  const auto source = std::make_shared<FakeSource>(20, every);
  FeedOptions options = Small(4);
  options.threads = 2;
  const auto replaced = Open(source, options)->Next();
  ASSERT_FALSE(replaced);
  EXPECT_THAT(replaced.error().message, HasSubstr("32 samples"));
  options.bad = BadPolicy::kSkip;
  const auto feed = Open(source, options);
  const auto skipped = feed->Next();
  ASSERT_FALSE(skipped);
  EXPECT_THAT(skipped.error().message, HasSubstr("no sample of the epoch"));
  EXPECT_EQ(feed->counters().bad.at("damaged"), 20);
}

TEST(Feed, SkipsABatchWithoutASample) {
  FeedOptions options = Small(2);
  options.sampler.sampling = Sampling::kSequential;
  options.bad = BadPolicy::kSkip;
  const auto seen = Epoch(*Open(std::make_shared<FakeSource>(6, std::set<int64_t>{2, 3}), options));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].samples, (std::vector<int64_t>{4, 5}));
}

TEST(Feed, LeavesKeptBatchesAlone) {
  FeedOptions options = Small(4);
  options.threads = 2;
  options.prefetch = 1;
  std::vector<Batch> kept;
  std::vector<Delivered> seen;
  {
    const auto feed = Open(std::make_shared<FakeSource>(80), options);
    for (int i = 0; i < 20; ++i) {
      kept.push_back(**feed->Next());
      seen.push_back(See(kept.back()));
    }
  }
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(See(kept[i]) == seen[i]);  // also after the feed is gone
}

// Gives out memory a few times.
class FewBuffers final : public BatchMemory {
 public:
  explicit FewBuffers(int count) : left_(count) {}
  Result<std::unique_ptr<BatchBuffer>> Allocate(size_t size) override {
    if (left_.fetch_sub(1) <= 0) return Fail(ErrorCode::kOverloaded, "no memory left");
    return memory_->Allocate(size);
  }
  void Allow(int count) { left_ = count; }

 private:
  const std::shared_ptr<BatchMemory> memory_ = ProcessMemory();
  std::atomic<int> left_;
};

TEST(Feed, SaysThatMemoryIsUsedUpAndGoesOn) {
  FeedOptions options = Small(4);
  const auto memory = std::make_shared<FewBuffers>(2);
  options.memory = memory;
  options.prefetch = 1;
  const auto expected = Epoch(*Open(std::make_shared<FakeSource>(40), Small(4)));
  const auto feed = Open(std::make_shared<FakeSource>(40), options);
  std::vector<Batch> kept;
  std::vector<Delivered> seen;
  Result<std::optional<Batch>> batch = feed->Next();
  for (; batch && *batch; batch = feed->Next()) {
    seen.push_back(See(**batch));
    kept.push_back(**batch);
  }
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, ErrorCode::kOverloaded);
  batch = std::nullopt;
  kept.clear();
  memory->Allow(100);
  for (const Delivered& more : Epoch(*feed)) seen.push_back(more);
  EXPECT_TRUE(seen == expected);
}

TEST(Feed, RefusesToServeAForkedChild) {
  const auto feed = Open(std::make_shared<FakeSource>(64), Small(4));
  ASSERT_TRUE(feed->Next());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto batch = feed->Next();
    ::_exit(!batch && batch.error().code == ErrorCode::kUnsupported ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(feed->Next());
}

TEST(Feed, RefusesOptionsThatDoNotFitTheSet) {
  const SteadyClock clock;
  const auto source = std::make_shared<FakeSource>(10);
  const auto refusal = [&](const FeedOptions& options) {
    const auto feed = Feed::Open(source, options, clock);
    return feed ? std::string("opened") : feed.error().message;
  };
  EXPECT_THAT(refusal(Small(11)), HasSubstr("no whole batch"));
  FeedOptions options = Small(4);
  options.threads = 0;
  EXPECT_THAT(refusal(options), HasSubstr("0 threads"));
  options = Small(4);
  options.prefetch = 0;
  EXPECT_THAT(refusal(options), HasSubstr("prefetch of 0"));
  options = Small(4);
  options.augment.crop = CropRule::kNone;
  EXPECT_THAT(refusal(options), HasSubstr("8x6"));
  options.augment.crop = CropRule::kCentre;
  options.augment.width = 9;
  EXPECT_THAT(refusal(options), HasSubstr("larger"));
}

TEST(Feed, BalancesClasses) {
  FeedOptions options = Small(10);
  options.sampler.sampling = Sampling::kBalanced;
  for (const Delivered& seen : Epoch(*Open(std::make_shared<FakeSource>(41), options)))
    EXPECT_EQ(std::count(seen.labels.begin(), seen.labels.end(), 0), 5);
}

// FakeSource whose reads end one after the other on a thread of their own, the last begun first.
class LateSource final : public Source {
 public:
  explicit LateSource(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  int64_t size() const override { return source_->size(); }
  const std::vector<std::string>& classes() const override { return source_->classes(); }
  int32_t Label(int64_t sample) const override { return source_->Label(sample); }
  std::string Name(int64_t sample) const override { return source_->Name(sample); }
  std::optional<RawShape> raw() const override { return source_->raw(); }
  const std::string& hash() const override { return source_->hash(); }
  image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const override {
    ++alone;
    return source_->Read(sample, buffer);
  }
  Result<std::unique_ptr<SampleReads>> ReadMany(int depth) const override {
    return std::make_unique<Reads>(*this, depth);
  }
  mutable std::atomic<int> alone = 0, most = 0;

 private:
  class Reads final : public SampleReads {
   public:
    Reads(const LateSource& source, int depth) : source_(source), depth_(depth) {
      thread_ = std::jthread([this](const std::stop_token& stop) { Work(stop); });
    }
    ~Reads() override {
      thread_.request_stop();
      Wake();
      thread_.join();
    }
    void Start(int64_t sample, Done done) override {
      const MutexLock lock(mutex_);
      begun_.emplace_back(sample, std::move(done));
      EXPECT_LE(std::ssize(begun_), depth_);
      source_.most = std::max(source_.most.load(), static_cast<int>(begun_.size()));
      changed_.NotifyAll();
    }

   private:
    void Wake() {
      const MutexLock lock(mutex_);
      changed_.NotifyAll();
    }
    void Work(const std::stop_token& stop) {
      while (true) {
        std::pair<int64_t, Done> one;
        {
          const MutexLock lock(mutex_);
          while (begun_.empty() && !stop.stop_requested()) changed_.Wait(mutex_);
          if (stop.stop_requested()) return;
          one = std::move(begun_.back());
          begun_.pop_back();
        }
        ReadBuffer buffer;
        const auto bytes = source_.source_->Read(one.first, buffer);
        if (bytes) {
          one.second(Bytes::Copy(*bytes));
        } else {
          one.second(std::unexpected(bytes.error()));
        }
      }
    }
    const LateSource& source_;
    const int depth_;
    Mutex mutex_;
    CondVar changed_;
    std::vector<std::pair<int64_t, Done>> begun_ GUARDED_BY(mutex_);
    std::jthread thread_;
  };
  const std::shared_ptr<const Source> source_;
};

TEST(Feed, GivesTheSameWithReadsAhead) {
  const auto source = std::make_shared<FakeSource>(101, std::set<int64_t>{3, 50});
  for (const BadPolicy bad : {BadPolicy::kReplace, BadPolicy::kSkip}) {
    FeedOptions options = Small(8);
    options.bad = bad;
    options.slice.ends = Ends::kPad;
    const auto expected = Epochs(*Open(source, options), 2);
    for (const int reads : {1, 5, 40}) {
      for (const int threads : {1, 3}) {
        const auto late = std::make_shared<LateSource>(source);
        options.reads = reads;
        options.threads = threads;
        options.prefetch = 1 + reads % 4;
        EXPECT_TRUE(Epochs(*Open(late, options), 2) == expected) << reads << " " << threads;
        EXPECT_LE(late->alone, bad == BadPolicy::kReplace ? 5 : 0);  // substitutes alone
      }
    }
  }
}

TEST(Feed, MovesWhileReadsAreUnderWay) {
  const auto late = std::make_shared<LateSource>(std::make_shared<FakeSource>(64));
  FeedOptions options = Small(8);
  const auto all = Epochs(*Open(late, options), 2);
  options.reads = 20;
  const auto feed = Open(late, options);
  for (const int64_t epoch : {1, 0, 1}) {
    ASSERT_TRUE(feed->SetEpoch(epoch));
    const auto batch = feed->Next();
    ASSERT_TRUE(batch);
    EXPECT_TRUE(See(**batch) == all[static_cast<size_t>(8 * epoch)]);
  }
}

TEST(Feed, RefusesReadsThatItsSourceLacks) {
  FeedOptions options = Small(8);
  options.reads = 4;
  const auto feed = Open(std::make_shared<FakeSource>(64), options);
  EXPECT_EQ(feed->Next().error().code, ErrorCode::kUnsupported);
  options.reads = 5000;
  static const SteadyClock clock;
  EXPECT_EQ(Feed::Open(std::make_shared<FakeSource>(64), options, clock).error().code,
            ErrorCode::kInvalidArgument);
}

// A store that is gone.
class GoneSource final : public Source {
 public:
  int64_t size() const override { return 64; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int32_t Label(int64_t) const override { return -1; }
  std::string Name(int64_t) const override { return "s3://bucket/key"; }
  const std::string& hash() const override { return hash_; }
  image::Accepted<std::span<const std::byte>> Read(int64_t, ReadBuffer&) const override {
    return std::unexpected(image::Reject{image::RejectReason::kUnreachable, "no answer"});
  }

 private:
  const std::vector<std::string> classes_;
  const std::string hash_ = std::string(32, '2');
};

TEST(Feed, EndsWhenItsStoreIsGoneUnderAnyPolicy) {
  for (const BadPolicy bad : {BadPolicy::kReplace, BadPolicy::kSkip, BadPolicy::kStop}) {
    FeedOptions options = Small(8);
    options.bad = bad;
    const auto feed = Open(std::make_shared<GoneSource>(), options);
    const auto batch = feed->Next();
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().code, ErrorCode::kIo);
    EXPECT_THAT(batch.error().message, HasSubstr("no answer"));
    EXPECT_EQ(feed->state().position, 0);
  }
}

TEST(Feed, GivesTheSameFromACache) {
  const auto source = std::make_shared<FakeSource>(60, std::set<int64_t>{3});
  FeedOptions options = Small(8);
  const auto expected = Epochs(*Open(source, options), 3);
  for (const uint64_t bytes : {uint64_t{2000}, uint64_t{1} << 20}) {
    for (const int reads : {0, 8}) {
      options.cache.bytes = bytes;
      options.reads = reads;
      const auto feed = Open(std::make_shared<LateSource>(source), options);
      EXPECT_TRUE(Epochs(*feed, 3) == expected);
      EXPECT_GT(feed->counters().cached, 0);
    }
  }
}

}  // namespace
}  // namespace weir::feed
