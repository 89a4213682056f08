#include "feed/feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "feed/engine.h"

namespace weir::feed {

namespace {

constexpr size_t kMostNamed = 100;

}  // namespace

// Moves the rows that hold a sample to the front, in their order, and clears the rest.
void FeedEngine::Compact(Draft& draft) const {
  Batch& batch = draft.batch;
  const size_t bytes = row_bytes_;
  std::byte* rows = batch.rows->data();
  size_t kept = 0;
  for (size_t row = 0; row < draft.usable.size(); ++row) {
    if (draft.usable[row] == 0) continue;
    if (kept != row) {
      std::memcpy(rows + kept * bytes, rows + row * bytes, bytes);
      if (batch.masks != nullptr)
        std::memcpy(batch.masks + kept * mask_bytes_, batch.masks + row * mask_bytes_, mask_bytes_);
      batch.labels[kept] = batch.labels[row];
      batch.samples[kept] = batch.samples[row];
    }
    ++kept;
  }
  batch.count = static_cast<int64_t>(kept);
  for (; kept < draft.usable.size(); ++kept) {
    std::memset(rows + kept * bytes, 0, bytes);
    if (batch.masks != nullptr) std::memset(batch.masks + kept * mask_bytes_, 0, mask_bytes_);
    batch.labels[kept] = batch.samples[kept] = -1;
  }
}

bool FeedEngine::WaitUntil(Instant when) {
  if (IsOfParent()) return true;
  if (BatchesFromHere() == 0 || !Start()) return true;  // Next says why
  const MutexLock lock(mutex_);
  while (!out_of_memory_ && (drafts_.empty() || drafts_.front()->finished < options_.slice.batch)) {
    if (!ready_.WaitUntil(mutex_, when)) return false;
  }
  return true;
}

bool FeedEngine::IsReady() {
  if (IsOfParent() || BatchesFromHere() == 0) return true;
  if (!started_) return false;
  const MutexLock lock(mutex_);
  if (drafts_.empty() || drafts_.front()->finished < options_.slice.batch) return false;
  const Draft& next = *drafts_.front();
  return !next.failure && std::ranges::find(next.usable, 0) == next.usable.end();
}

Result<std::optional<Batch>> FeedEngine::Next() {
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
    TRY_STATUS(Start());
    std::unique_ptr<Draft> draft;
    bool wakes = false;
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
      wakes = std::ssize(drafts_) <= options_.prefetch / 2;
    }
    // To wake a thread costs the consumer more than all the rest of this function. So threads that sleep over
    // a full queue sleep until half of it is taken. The one that wakes up wakes the others.
    if (wakes) work_.NotifyOne();
    auto batch = TRY(Deliver(*std::move(draft)));
    if (batch) return batch;
  }
}

// Returns nullopt for a batch without a row: its samples were skipped.
Result<std::optional<Batch>> FeedEngine::Deliver(Draft draft) {
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

Status FeedEngine::EndEpoch() {
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

Status FeedEngine::MoveTo(int64_t epoch, int64_t position) {
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
  if (options.reads < -1 || options.reads > kMostAhead)
    return refuse(fmt::format("{} reads at a time: give 0 to {}", options.reads, kMostAhead));
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

Feed::Feed(std::unique_ptr<FeedEngine> engine) : engine_(std::move(engine)) {}
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
  if (options.masks && options.masks->size() != source->size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} masks for {} pictures", options.masks->size(), source->size()));
  auto cache = TRY(OpenCache(options.cache));
  return std::unique_ptr<Feed>(new Feed(std::make_unique<FeedEngine>(
      std::move(source), std::move(options), std::move(sampler), std::move(cache), clock)));
}

Result<std::optional<Batch>> Feed::Next() { return engine_->Next(); }
bool Feed::IsReady() const { return engine_->IsReady(); }
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
size_t Feed::row_bytes() const { return engine_->row_bytes_; }
const Sampler& Feed::sampler() const { return engine_->sampler_; }

}  // namespace weir::feed
