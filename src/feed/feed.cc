#include "feed/feed.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "feed/picture.h"

namespace weir::feed {

std::string_view ToString(BadPolicy policy) {
  switch (policy) {
    case BadPolicy::kReplace:
      return "replace";
    case BadPolicy::kSkip:
      return "skip";
    case BadPolicy::kStop:
      return "stop";
  }
  return "unknown";
}

namespace {

// Substitutes that may be bad, too, before a feed gives up on a row.
constexpr int kMostSubstitutes = 32;
constexpr size_t kMostNamed = 100;

// Memory of batches that came back.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  BufferPool(std::shared_ptr<BatchMemory> memory, size_t size, size_t kept)
      : memory_(std::move(memory)), size_(size), kept_(kept) {}

  Result<std::shared_ptr<BatchBuffer>> Take() {
    std::unique_ptr<BatchBuffer> buffer;
    {
      const MutexLock lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!buffer) buffer = TRY(memory_->Allocate(size_));
    return std::shared_ptr<BatchBuffer>(
        buffer.release(), [pool = shared_from_this()](BatchBuffer* returned) { pool->Return(returned); });
  }

 private:
  void Return(BatchBuffer* returned) {
    std::unique_ptr<BatchBuffer> buffer(returned);
    const MutexLock lock(mutex_);
    if (free_.size() < kept_) free_.push_back(std::move(buffer));
  }

  const std::shared_ptr<BatchMemory> memory_;
  const size_t size_, kept_;
  Mutex mutex_;
  std::vector<std::unique_ptr<BatchBuffer>> free_ GUARDED_BY(mutex_);
};

// A batch that the threads are making.
struct Draft {
  Batch batch;
  std::shared_ptr<const EpochOrder> order;
  int64_t claimed = 0, finished = 0;               // rows
  std::vector<uint8_t> usable;                     // of each row; each thread writes its own
  std::vector<std::pair<int64_t, BadSample>> bad;  // with the row
  // The first row that cannot be filled, and why.
  std::optional<std::pair<int64_t, Error>> failure;
};

}  // namespace

class Feed::Engine {
 public:
  Engine(std::shared_ptr<const Source> source, FeedOptions options, Sampler sampler, const Clock& clock)
      : source_(std::move(source)),
        options_(std::move(options)),
        sampler_(std::move(sampler)),
        clock_(clock),
        pool_(std::make_shared<BufferPool>(
            options_.memory ? options_.memory : ProcessMemory(),
            static_cast<size_t>(options_.slice.batch) * options_.augment.sample_bytes(),
            static_cast<size_t>(options_.prefetch) + 1)) {
    own_.set = source_->hash();
    const std::string recipe = fmt::format("{} {} bad {}", sampler_.Canonical(), Canonical(options_.augment),
                                           ToString(options_.bad));
    own_.recipe = fmt::format("{:016x}", XXH3_64bits(recipe.data(), recipe.size()));
    own_.seed = options_.seed;
  }

  ~Engine() { Stop(); }

  // True in a child of the process that started the threads: it has their locks, held for ever, but not them.
  bool IsOfParent() const { return started_ && owner_ != ::getpid(); }
  Result<std::optional<Batch>> Next();
  bool WaitUntil(Instant when);
  Status MoveTo(int64_t epoch, int64_t position);
  FeedState state() const EXCLUDES(mutex_) {
    FeedState state = own_;
    state.epoch = epoch_;
    state.position = position_;
    return state;
  }
  FeedCounters counters() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return counters_;
  }
  std::vector<BadSample> named() const { return named_; }
  int64_t BatchesFromHere() const { return BatchesFrom(options_.slice, sampler_.size(), position_); }

  const std::shared_ptr<const Source> source_;
  const FeedOptions options_;
  const Sampler sampler_;
  FeedState own_;  // without epoch and position

 private:
  struct Worker;

  void Start() EXCLUDES(mutex_);
  void Stop() EXCLUDES(mutex_);
  void Work() EXCLUDES(mutex_);
  Draft* Claim(int64_t& first, int64_t& count) REQUIRES(mutex_);
  Draft* OpenDraft() REQUIRES(mutex_);
  void MakeRow(Draft& draft, int64_t row, Worker& worker) EXCLUDES(mutex_);
  image::Accepted<void> MakeSample(int64_t sample, const DrawKey& key, Worker& worker, std::byte* row);
  void NoteBad(Draft& draft, int64_t row, int64_t sample, image::Reject reject) EXCLUDES(mutex_);
  void NoteFailure(Draft& draft, int64_t row, Error error) EXCLUDES(mutex_);
  Result<std::optional<Batch>> Deliver(Draft draft);
  void Compact(Draft& draft) const;
  Status EndEpoch();

  const Clock& clock_;
  const std::shared_ptr<BufferPool> pool_;

  // The consumer's: where it stands.
  int64_t epoch_ = 0, position_ = 0;
  int64_t rows_of_epoch_ = 0, bad_of_epoch_ = 0;
  std::vector<BadSample> named_;
  bool started_ = false;
  pid_t owner_ = 0;

  mutable Mutex mutex_;
  CondVar work_, ready_;                                          // for the threads; for the consumer
  std::deque<std::unique_ptr<Draft>> drafts_ GUARDED_BY(mutex_);  // by order
  int64_t next_epoch_ GUARDED_BY(mutex_) = 0, next_position_ GUARDED_BY(mutex_) = 0;  // of the next draft
  std::shared_ptr<const EpochOrder> order_ GUARDED_BY(mutex_);                        // of next_epoch_
  std::optional<Error> out_of_memory_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  FeedCounters counters_ GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

// One thread's own.
struct Feed::Engine::Worker {
  Worker(const FeedOptions& options, const Clock& clock) : maker(options.augment, options.decode, clock) {}
  PictureMaker maker;
  ReadBuffer buffer;
  FeedCounters counters;
};

void Feed::Engine::Start() {
  if (started_) return;
  started_ = true;
  owner_ = ::getpid();
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
    next_epoch_ = epoch_;
    next_position_ = position_;
    order_.reset();
  }
  for (int i = 0; i < options_.threads; ++i)
    threads_.push_back(StartThread(fmt::format("feed-{}", i), [this](const std::stop_token&) { Work(); }));
}

void Feed::Engine::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    work_.NotifyAll();
  }
  threads_.clear();
  const MutexLock lock(mutex_);
  drafts_.clear();
  out_of_memory_.reset();
  started_ = false;
}

Draft* Feed::Engine::OpenDraft() {
  if (std::ssize(drafts_) >= options_.prefetch || out_of_memory_) return nullptr;
  const Slice& slice = options_.slice;
  if (BatchesFrom(slice, sampler_.size(), next_position_) == 0) {
    ++next_epoch_;
    next_position_ = 0;
    order_.reset();
  }
  if (!order_) {
    order_ = std::make_shared<const EpochOrder>(
        sampler_.MakeEpoch(options_.seed, static_cast<uint64_t>(next_epoch_)));
  }
  auto rows = pool_->Take();
  if (!rows) {
    out_of_memory_ = std::move(rows).error();
    ready_.NotifyAll();
    return nullptr;
  }
  auto draft = std::make_unique<Draft>();
  draft->order = order_;
  draft->usable.assign(static_cast<size_t>(slice.batch), 0);
  Batch& batch = draft->batch;
  batch.rows = *std::move(rows);
  batch.epoch = next_epoch_;
  batch.position = next_position_;
  batch.labels.assign(static_cast<size_t>(slice.batch), -1);
  batch.samples.assign(static_cast<size_t>(slice.batch), -1);
  next_position_ += slice.global_batch();
  drafts_.push_back(std::move(draft));
  return drafts_.back().get();
}

// Finds rows to make: those of the oldest batch first, so that the consumer waits least.
Draft* Feed::Engine::Claim(int64_t& first, int64_t& count) {
  Draft* found = nullptr;
  for (const std::unique_ptr<Draft>& draft : drafts_) {
    if (draft->claimed < options_.slice.batch) {
      found = draft.get();
      break;
    }
  }
  if (found == nullptr) found = OpenDraft();
  if (found == nullptr) return nullptr;
  // Raw records are made in microseconds: several at once keep the lock out of the way.
  const int64_t at_once =
      source_->raw() ? std::max<int64_t>(1, options_.slice.batch / (4 * options_.threads)) : 1;
  first = found->claimed;
  count = std::min(at_once, options_.slice.batch - first);
  found->claimed += count;
  return found;
}

void Feed::Engine::Work() {
  Worker worker(options_, clock_);
  Duration cpu = ThreadCpuTime();
  while (true) {
    Draft* draft = nullptr;
    int64_t first = 0, count = 0;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && (draft = Claim(first, count)) == nullptr) {
        const Instant begin = clock_.Now();
        work_.Wait(mutex_);
        counters_.threads_idle += clock_.Now() - begin;
      }
      if (stopping_) return;
      // Another thread may sleep though rows are left.
      if (first == 0) work_.NotifyAll();
    }
    for (int64_t row = first; row < first + count; ++row) MakeRow(*draft, row, worker);

    const PictureTimes times = worker.maker.TakeTimes();
    const Duration cpu_now = ThreadCpuTime();
    const MutexLock lock(mutex_);
    FeedCounters& own = worker.counters;
    counters_.samples += std::exchange(own.samples, 0);
    counters_.bytes += std::exchange(own.bytes, 0);
    counters_.read += std::exchange(own.read, Duration{});
    counters_.decode += times.decode;
    counters_.augment += times.augment;
    counters_.cpu += cpu_now - std::exchange(cpu, cpu_now);
    draft->finished += count;
    if (draft->finished == options_.slice.batch) ready_.NotifyAll();
  }
}

image::Accepted<void> Feed::Engine::MakeSample(int64_t sample, const DrawKey& key, Worker& worker,
                                               std::byte* row) {
  const Instant begin = clock_.Now();
  const auto bytes = source_->Read(sample, worker.buffer);
  worker.counters.read += clock_.Now() - begin;
  if (!bytes) return std::unexpected(bytes.error());
  worker.counters.bytes += std::ssize(*bytes);
  ++worker.counters.samples;
  if (const std::optional<RawShape> shape = source_->raw())
    return worker.maker.MakeRaw(*bytes, *shape, key, row);
  return worker.maker.MakeEncoded(*bytes, key, row);
}

void Feed::Engine::MakeRow(Draft& draft, int64_t row, Worker& worker) {
  Batch& batch = draft.batch;
  const size_t bytes = options_.augment.sample_bytes();
  std::byte* at = batch.rows->data() + static_cast<size_t>(row) * bytes;
  const std::optional<int64_t> position = PositionOf(options_.slice, sampler_.size(), batch.position, row);
  if (!position) {
    std::memset(at, 0, bytes);
    return;
  }
  const auto epoch = static_cast<uint64_t>(batch.epoch);
  int64_t sample = draft.order->At(*position);
  Chance substitutes(options_.seed, epoch, static_cast<uint64_t>(*position), Operation::kReplace);
  for (int attempt = 0;; ++attempt) {
    // A sample that stands at several positions gets draws of its own at each.
    const uint64_t item = sampler_.repeats() ? uint64_t{1} << 63 | static_cast<uint64_t>(*position)
                                             : static_cast<uint64_t>(sample);
    image::Accepted<void> made = MakeSample(sample, {options_.seed, epoch, item}, worker, at);
    if (made) {
      batch.labels[static_cast<size_t>(row)] = source_->Label(sample);
      batch.samples[static_cast<size_t>(row)] = sample;
      draft.usable[static_cast<size_t>(row)] = 1;
      return;
    }
    if (options_.bad == BadPolicy::kStop) {
      NoteFailure(
          draft, row,
          {ErrorCode::kCorrupt, fmt::format("{}: {}: {}", EscapeBytes(source_->Name(sample)),
                                            image::ToString(made.error().reason), made.error().detail)});
      return;
    }
    NoteBad(draft, row, sample, made.error());
    if (options_.bad == BadPolicy::kSkip) return;
    if (attempt == kMostSubstitutes) {
      NoteFailure(
          draft, row,
          {ErrorCode::kCorrupt,
           fmt::format(
               "{} samples chosen by chance in place of a bad one are bad as well, the last {}: {}: {}",
               kMostSubstitutes, EscapeBytes(source_->Name(sample)), image::ToString(made.error().reason),
               made.error().detail)});
      return;
    }
    sample = draft.order->At(substitutes.Integer(0, sampler_.size() - 1));
  }
}

void Feed::Engine::NoteBad(Draft& draft, int64_t row, int64_t sample, image::Reject reject) {
  const MutexLock lock(mutex_);
  draft.bad.push_back({row, {sample, std::move(reject)}});
}

void Feed::Engine::NoteFailure(Draft& draft, int64_t row, Error error) {
  const MutexLock lock(mutex_);
  if (!draft.failure || row < draft.failure->first) draft.failure.emplace(row, std::move(error));
}

// Moves the rows that hold a sample to the front, in their order, and clears the rest.
void Feed::Engine::Compact(Draft& draft) const {
  Batch& batch = draft.batch;
  const size_t bytes = options_.augment.sample_bytes();
  std::byte* rows = batch.rows->data();
  size_t kept = 0;
  for (size_t row = 0; row < draft.usable.size(); ++row) {
    if (draft.usable[row] == 0) continue;
    if (kept != row) {
      std::memcpy(rows + kept * bytes, rows + row * bytes, bytes);
      batch.labels[kept] = batch.labels[row];
      batch.samples[kept] = batch.samples[row];
    }
    ++kept;
  }
  batch.count = static_cast<int64_t>(kept);
  for (; kept < draft.usable.size(); ++kept) {
    std::memset(rows + kept * bytes, 0, bytes);
    batch.labels[kept] = batch.samples[kept] = -1;
  }
}

bool Feed::Engine::WaitUntil(Instant when) {
  if (IsOfParent()) return true;
  if (BatchesFromHere() == 0) return true;
  Start();
  const MutexLock lock(mutex_);
  while (!out_of_memory_ && (drafts_.empty() || drafts_.front()->finished < options_.slice.batch)) {
    if (!ready_.WaitUntil(mutex_, when)) return false;
  }
  return true;
}

Result<std::optional<Batch>> Feed::Engine::Next() {
  if (IsOfParent()) {
    return Fail(ErrorCode::kUnsupported,
                "this feed was opened before a fork, and its threads are in the parent process: open it in "
                "the child");
  }
  {
    // Memory may have come back since the last call: the threads try again.
    const MutexLock lock(mutex_);
    if (out_of_memory_) work_.NotifyAll();
    out_of_memory_.reset();
  }
  while (true) {
    if (BatchesFromHere() == 0) {
      TRY_STATUS(EndEpoch());
      return std::nullopt;
    }
    Start();
    std::unique_ptr<Draft> draft;
    {
      const MutexLock lock(mutex_);
      const Instant begin = clock_.Now();
      while (!out_of_memory_ && (drafts_.empty() || drafts_.front()->finished < options_.slice.batch))
        ready_.Wait(mutex_);
      counters_.consumer_wait += clock_.Now() - begin;
      if (drafts_.empty() || drafts_.front()->finished < options_.slice.batch) {
        return std::unexpected(*out_of_memory_);
      }
      draft = std::move(drafts_.front());
      drafts_.pop_front();
      out_of_memory_.reset();
      work_.NotifyAll();
    }
    auto batch = TRY(Deliver(*std::move(draft)));
    if (batch) return batch;
  }
}

// Returns nullopt for a batch without a row: its samples were skipped.
Result<std::optional<Batch>> Feed::Engine::Deliver(Draft draft) {
  if (draft.failure) {
    // The batch is not taken: another Next begins with it again.
    TRY_STATUS(MoveTo(draft.batch.epoch, draft.batch.position));
    return std::unexpected(std::move(draft.failure->second));
  }
  if (std::ranges::find(draft.usable, 0) == draft.usable.end()) {
    draft.batch.count = options_.slice.batch;
  } else {
    Compact(draft);
  }
  std::ranges::stable_sort(draft.bad, {}, [](const auto& bad) { return bad.first; });
  position_ = draft.batch.position + options_.slice.global_batch();
  rows_of_epoch_ += draft.batch.count;
  bad_of_epoch_ += std::ssize(draft.bad);
  {
    const MutexLock lock(mutex_);
    for (const auto& [row, bad] : draft.bad) ++counters_.bad[std::string(image::ToString(bad.reject.reason))];
    counters_.batches += draft.batch.count > 0 ? 1 : 0;
    counters_.rows += draft.batch.count;
  }
  for (auto& [row, bad] : draft.bad) {
    if (named_.size() < kMostNamed) named_.push_back(bad);
    draft.batch.bad.push_back(std::move(bad));
  }
  if (draft.batch.count == 0 && !draft.batch.bad.empty()) return std::nullopt;
  return std::move(draft.batch);
}

Status Feed::Engine::EndEpoch() {
  const bool nothing = rows_of_epoch_ == 0 && bad_of_epoch_ > 0;
  ++epoch_;
  position_ = 0;
  rows_of_epoch_ = bad_of_epoch_ = 0;
  if (!nothing) return {};
  const BadSample& first = named_.front();
  return Fail(ErrorCode::kCorrupt,
              fmt::format("no sample of the epoch could be used; the first is {}: {}: {}",
                          EscapeBytes(source_->Name(first.sample)), image::ToString(first.reject.reason),
                          first.reject.detail));
}

Status Feed::Engine::MoveTo(int64_t epoch, int64_t position) {
  if (IsOfParent())
    return Fail(ErrorCode::kUnsupported, "this feed was opened before a fork: open it in the child");
  Stop();
  epoch_ = epoch;
  position_ = position;
  rows_of_epoch_ = bad_of_epoch_ = 0;
  return {};
}

namespace {

Status CheckOptions(const FeedOptions& options) {
  const auto refuse = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  constexpr int kMostThreads = 1024, kMostAhead = 4096;
  constexpr size_t kMostBytes = size_t{1} << 40;
  if (options.threads < 1 || options.threads > kMostThreads)
    return refuse(fmt::format("{} threads: give 1 to {}", options.threads, kMostThreads));
  if (options.prefetch < 1 || options.prefetch > kMostAhead)
    return refuse(fmt::format("a prefetch of {}: give 1 to {}", options.prefetch, kMostAhead));
  TRY_STATUS(CheckAugment(options.augment));
  if (options.augment.sample_bytes() >
      kMostBytes / static_cast<size_t>(std::max<int64_t>(1, options.slice.batch)))
    return refuse("a batch of more than 1 TiB: take fewer or smaller pictures");
  return {};
}

// That raw records can be what the augmentation wants.
Status CheckRaw(const RawShape& shape, const AugmentOptions& augment) {
  const bool smaller = shape.width < augment.width || shape.height < augment.height;
  const bool same = shape.width == augment.width && shape.height == augment.height;
  if (augment.crop == CropRule::kCentre && smaller) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the set's records are {}x{} pixels, and a centre of {}x{} is "
                            "wanted: prepare the set larger, or ask for less",
                            shape.width, shape.height, augment.width, augment.height));
  }
  if (augment.crop == CropRule::kNone && !same) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "the set's records are {}x{} pixels, and {}x{} are wanted without a crop: ask for that size",
            shape.width, shape.height, augment.width, augment.height));
  }
  return {};
}

}  // namespace

Feed::Feed(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Feed::~Feed() {
  if (engine_->IsOfParent()) static_cast<void>(engine_.release());  // there is nothing to join
}

Result<std::unique_ptr<Feed>> Feed::Open(std::shared_ptr<const Source> source, FeedOptions options,
                                         const Clock& clock) {
  std::vector<int32_t> labels;
  if (options.sampler.sampling == Sampling::kBalanced) {
    labels.reserve(static_cast<size_t>(source->size()));
    for (int64_t i = 0; i < source->size(); ++i) labels.push_back(source->Label(i));
  }
  Sampler sampler = TRY(Sampler::Make(options.sampler, source->size(), labels));
  options.sampler = {};  // the sampler has them
  TRY_STATUS(CheckSlice(options.slice, sampler.size()));
  TRY_STATUS(CheckOptions(options));
  if (const std::optional<RawShape> raw = source->raw()) TRY_STATUS(CheckRaw(*raw, options.augment));
  return std::unique_ptr<Feed>(
      new Feed(std::make_unique<Engine>(std::move(source), std::move(options), std::move(sampler), clock)));
}

Result<std::optional<Batch>> Feed::Next() { return engine_->Next(); }
bool Feed::WaitUntil(Instant when) { return engine_->WaitUntil(when); }
int64_t Feed::BatchesLeft() const { return engine_->BatchesFromHere(); }
int64_t Feed::BatchesPerEpoch() const {
  return BatchesFrom(engine_->options_.slice, engine_->sampler_.size(), 0);
}
FeedState Feed::state() const { return engine_->state(); }

Status Feed::SetState(const FeedState& state) {
  TRY_STATUS(CheckState(state, engine_->own_, engine_->sampler_.size()));
  return engine_->MoveTo(state.epoch, state.position);
}

Status Feed::SetEpoch(int64_t epoch) {
  if (epoch < 0) return Fail(ErrorCode::kInvalidArgument, fmt::format("epoch {}: give at least 0", epoch));
  const FeedState now = engine_->state();
  if (now.epoch == epoch && now.position == 0) return {};
  return engine_->MoveTo(epoch, 0);
}

FeedCounters Feed::counters() const { return engine_->counters(); }
std::vector<BadSample> Feed::bad_samples() const { return engine_->named(); }
const Source& Feed::source() const { return *engine_->source_; }
const FeedOptions& Feed::options() const { return engine_->options_; }
const Sampler& Feed::sampler() const { return engine_->sampler_; }

}  // namespace weir::feed
