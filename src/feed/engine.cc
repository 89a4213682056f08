#include "feed/engine.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/json.h"
#include "base/thread.h"

namespace weir::feed {
namespace {

// Substitutes that may be bad, too, before a feed gives up on a row.
constexpr int kMostSubstitutes = 32;

}  // namespace

FeedEngine::FeedEngine(std::shared_ptr<const Source> source, FeedOptions options, Sampler sampler,
                       std::shared_ptr<SampleCache> cache, const Clock& clock)
    : source_(std::move(source)),
      options_(std::move(options)),
      sampler_(std::move(sampler)),
      row_bytes_(source_->records() ? source_->records()->bytes : options_.augment.sample_bytes()),
      clock_(clock),
      from_{source_,
            options_.masks,
            std::move(cache),
            options_.cache.decoded,
            options_.decode.tolerate_damage,
            !options_.cache.folder.empty()},
      masks_begin_(options_.masks ? (static_cast<size_t>(options_.slice.batch) * row_bytes_ + 63) / 64 * 64
                                  : static_cast<size_t>(options_.slice.batch) * row_bytes_),
      mask_bytes_(options_.masks ? options_.augment.mask_bytes() : 0),
      pool_(
          std::make_shared<BufferPool>(options_.memory ? options_.memory : ProcessMemory(),
                                       masks_begin_ + static_cast<size_t>(options_.slice.batch) * mask_bytes_,
                                       static_cast<size_t>(options_.prefetch) + 1)) {
  own_.set = source_->hash();
  std::string recipe =
      fmt::format("{} {} bad {}", sampler_.Canonical(), Canonical(options_.augment), ToString(options_.bad));
  if (options_.decode.tolerate_damage) recipe += " tolerate damage";
  if (options_.masks) recipe += " masks " + options_.masks->hash();
  own_.recipe = fmt::format("{:016x}", XXH3_64bits(recipe.data(), recipe.size()));
  own_.seed = options_.seed;
}

// Makes the reads ahead that the options ask for, or the source wants.
Status FeedEngine::MakeReads() {
  depth_ = options_.reads >= 0 ? options_.reads : source_->reads_wanted();
  if (options_.reads < 0 && options_.masks) depth_ = std::max(depth_, options_.masks->reads_wanted());
  if (depth_ == 0) return {};
  reads_ = TRY(source_->ReadMany(depth_));
  if (options_.masks) mask_reads_ = TRY(options_.masks->ReadMany(depth_));
  return {};
}

Status FeedEngine::Start() {
  if (started_) return {};
  TRY_STATUS(MakeReads());
  started_ = true;
  owner_ = ::getpid();
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
    next_epoch_ = epoch_;
    next_position_ = position_;
    order_.reset();
    ahead_ = 0;
  }
  for (int i = 0; i < options_.threads; ++i)
    threads_.push_back(StartThread(fmt::format("feed-{}", i), [this](const std::stop_token&) { Work(); }));
  return {};
}

void FeedEngine::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    work_.NotifyAll();
  }
  threads_.clear();
  reads_.reset();  // none of them arrives any more
  mask_reads_.reset();
  const MutexLock lock(mutex_);
  drafts_.clear();
  out_of_memory_.reset();
  started_ = false;
}

Draft* FeedEngine::OpenDraft() {
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
  if (mask_bytes_ > 0) batch.masks = batch.rows->data() + masks_begin_;
  if (reads_) {
    draft->ahead.resize(static_cast<size_t>(slice.batch));
    draft->parts_left.assign(static_cast<size_t>(slice.batch), mask_reads_ ? 2 : 1);
  }
  batch.epoch = next_epoch_;
  batch.position = next_position_;
  batch.labels.assign(static_cast<size_t>(slice.batch), -1);
  batch.samples.assign(static_cast<size_t>(slice.batch), -1);
  next_position_ += slice.global_batch();
  drafts_.push_back(std::move(draft));
  return drafts_.back().get();
}

// Chooses the rows to read next, those of the oldest batch first, as far as the depth allows.
void FeedEngine::PlanReads(std::vector<Begin>& begins) {
  while (ahead_ < depth_) {
    const auto found =
        std::ranges::find_if(drafts_, [&](const auto& draft) { return draft->begun < options_.slice.batch; });
    Draft* const draft = found == drafts_.end() ? OpenDraft() : found->get();
    if (draft == nullptr) return;
    const int64_t row = draft->begun++;
    const auto position = PositionOf(options_.slice, sampler_.size(), draft->batch.position, row);
    begins.push_back({draft, row, position ? draft->order->At(*position) : -1});
    ++ahead_;
  }
}

void FeedEngine::BeginReads(const Begin& begin) {
  const auto read = [&](const Source& source, SampleReads& reads, bool is_mask) {
    const uint64_t key = begin.sample < 0 ? 0 : CacheKeyOf(from_, source, begin.sample, options_.augment);
    if (begin.sample < 0 || (key != 0 && from_.cache->Has(key))) return Arrive(begin, is_mask, std::nullopt);
    reads.Start(begin.sample, [this, begin, is_mask](image::Accepted<Bytes> bytes) {
      Arrive(begin, is_mask, std::move(bytes));
    });
  };
  read(*source_, *reads_, false);
  if (mask_reads_) read(*options_.masks, *mask_reads_, true);
}

// Takes what was read ahead of a row; nullopt: there is nothing to read.
void FeedEngine::Arrive(const Begin& begin, bool is_mask, std::optional<image::Accepted<Bytes>> bytes) {
  const MutexLock lock(mutex_);
  const auto row = static_cast<size_t>(begin.row);
  (is_mask ? begin.draft->ahead[row].mask : begin.draft->ahead[row].picture) = std::move(bytes);
  if (--begin.draft->parts_left[row] > 0) return;
  begin.draft->come.push_back(begin.row);
  work_.NotifyOne();
}

// Finds rows to make: those of the oldest batch first, so that the consumer waits least.
Draft* FeedEngine::Claim(int64_t& first, int64_t& count) {
  if (reads_) {
    for (const std::unique_ptr<Draft>& draft : drafts_) {
      if (draft->come.empty()) continue;
      first = draft->come.front();
      count = 1;
      draft->come.pop_front();
      ++draft->claimed;
      --ahead_;
      return draft.get();
    }
    return nullptr;
  }
  Draft* found = nullptr;
  for (const std::unique_ptr<Draft>& draft : drafts_) {
    if (draft->claimed < options_.slice.batch) {
      found = draft.get();
      break;
    }
  }
  if (found == nullptr) found = OpenDraft();
  if (found == nullptr) return nullptr;
  // Records are made in microseconds: several at once keep the lock out of the way.
  const int64_t at_once = source_->raw() || source_->records()
                              ? std::max<int64_t>(1, options_.slice.batch / (4 * options_.threads))
                              : 1;
  first = found->claimed;
  count = std::min(at_once, options_.slice.batch - first);
  found->claimed += count;
  return found;
}

void FeedEngine::Work() {
  SampleMaker maker(from_, options_.augment, options_.decode, clock_);
  Duration cpu = ThreadCpuTime();
  std::vector<Begin> begins;
  while (true) {
    Draft* draft = nullptr;
    int64_t first = 0, count = 0;
    begins.clear();
    {
      const MutexLock lock(mutex_);
      while (!stopping_) {
        if (reads_) PlanReads(begins);
        draft = Claim(first, count);
        if (draft != nullptr || !begins.empty()) break;
        const Instant begin = clock_.Now();
        const bool reading = ahead_ > 0;
        work_.Wait(mutex_);
        (reading ? counters_.read : counters_.threads_idle) += clock_.Now() - begin;
      }
      if (stopping_) return;
      // Another thread may sleep though rows are left.
      if (draft != nullptr && first == 0 && !reads_) work_.NotifyAll();
    }
    for (const Begin& begin : begins) BeginReads(begin);
    if (draft == nullptr) continue;
    for (int64_t row = first; row < first + count; ++row) MakeRow(*draft, row, maker);

    bool is_finished = false;
    {
      const MutexLock lock(mutex_);
      AddCounts(maker, cpu);
      draft->finished += count;
      is_finished = draft->finished == options_.slice.batch;
    }
    if (is_finished) ready_.NotifyAll();
  }
}

// Adds what a thread did since the last call.
void FeedEngine::AddCounts(SampleMaker& maker, Duration& cpu) {
  const SampleCounts counts = maker.TakeCounts();
  const PictureTimes times = maker.TakeTimes();
  const Duration cpu_now = ThreadCpuTime();
  counters_.samples += counts.samples;
  counters_.bytes += counts.bytes;
  counters_.cached += counts.cached;
  counters_.read += counts.read;
  counters_.decode += times.decode;
  counters_.augment += times.augment;
  counters_.cpu += cpu_now - std::exchange(cpu, cpu_now);
}

void FeedEngine::MakeRow(Draft& draft, int64_t row, SampleMaker& maker) {
  Batch& batch = draft.batch;
  std::byte* at = batch.rows->data() + static_cast<size_t>(row) * row_bytes_;
  std::byte* const mask =
      batch.masks == nullptr ? nullptr : batch.masks + static_cast<size_t>(row) * mask_bytes_;
  const std::optional<int64_t> position = PositionOf(options_.slice, sampler_.size(), batch.position, row);
  if (!position) {
    std::memset(at, 0, row_bytes_);
    if (mask != nullptr) std::memset(mask, 0, mask_bytes_);
    return;
  }
  const auto epoch = static_cast<uint64_t>(batch.epoch);
  int64_t sample = draft.order->At(*position);
  ReadSample ahead;
  if (reads_) ahead = std::exchange(draft.ahead[static_cast<size_t>(row)], {});
  Chance substitutes(options_.seed, epoch, static_cast<uint64_t>(*position), Operation::kReplace);
  for (int attempt = 0;; ++attempt) {
    // A sample that stands at several positions gets draws of its own at each.
    const uint64_t item = sampler_.repeats() ? uint64_t{1} << 63 | static_cast<uint64_t>(*position)
                                             : static_cast<uint64_t>(sample);
    const image::Accepted<void> made =
        maker.Make(sample, {options_.seed, epoch, item}, std::exchange(ahead, {}), at, mask);
    if (made) {
      batch.labels[static_cast<size_t>(row)] = source_->Label(sample);
      batch.samples[static_cast<size_t>(row)] = sample;
      draft.usable[static_cast<size_t>(row)] = 1;
      return;
    }
    const bool is_unreachable = made.error().reason == image::RejectReason::kUnreachable;
    if (options_.bad == BadPolicy::kStop || is_unreachable) {
      NoteFailure(draft, row,
                  {is_unreachable ? ErrorCode::kIo : ErrorCode::kCorrupt,
                   fmt::format("{}: {}: {}", EscapeBytes(source_->Name(sample)),
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

void FeedEngine::NoteBad(Draft& draft, int64_t row, int64_t sample, image::Reject reject) {
  const MutexLock lock(mutex_);
  draft.bad.push_back({row, {sample, std::move(reject)}});
}

void FeedEngine::NoteFailure(Draft& draft, int64_t row, Error error) {
  const MutexLock lock(mutex_);
  if (!draft.failure || row < draft.failure->first) draft.failure.emplace(row, std::move(error));
}

}  // namespace weir::feed
