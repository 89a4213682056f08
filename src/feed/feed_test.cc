#include "feed/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <set>

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

}  // namespace
}  // namespace weir::feed
