// The threads of a feed, and the batches between them and the consumer.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "feed/batch_pool.h"
#include "feed/feed.h"
#include "feed/sample_maker.h"

namespace weir::feed {

// A batch that the threads are making.
struct Draft {
  Batch batch;
  std::shared_ptr<const EpochOrder> order;
  int64_t begun = 0, claimed = 0, finished = 0;    // rows; begun: to be read ahead
  std::deque<int64_t> come;                        // rows that were read ahead and wait for a thread
  std::vector<ReadSample> ahead;                   // by row
  std::vector<uint8_t> parts_left;                 // of a row's reads
  std::vector<uint8_t> usable;                     // of each row; each thread writes its own
  std::vector<std::pair<int64_t, BadSample>> bad;  // with the row
  // The first row that cannot be filled, and why.
  std::optional<std::pair<int64_t, Error>> failure;
};

// The inside of a Feed. The functions of the consumer stand in feed.cc, those of the threads in engine.cc.
class FeedEngine {
 public:
  FeedEngine(std::shared_ptr<const Source> source, FeedOptions options, Sampler sampler,
             std::shared_ptr<SampleCache> cache, const Clock& clock);
  ~FeedEngine() {
    Stop();
    pool_->Close();
  }

  // True in a child of the process that started the threads: it has their locks, held for ever, but not them.
  bool IsOfParent() const { return started_ && owner_ != ::getpid(); }
  Result<std::optional<Batch>> Next();
  bool IsReady() EXCLUDES(mutex_);
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
  const size_t row_bytes_;
  FeedState own_;  // without epoch and position

 private:
  // A row whose reads are to be begun. sample -1: a row that holds none.
  struct Begin {
    Draft* draft;
    int64_t row, sample;
  };

  Status Start() EXCLUDES(mutex_);
  Status MakeReads();
  void Stop() EXCLUDES(mutex_);
  void Work() EXCLUDES(mutex_);
  Draft* Claim(int64_t& first, int64_t& count) REQUIRES(mutex_);
  Draft* OpenDraft() REQUIRES(mutex_);
  void PlanReads(std::vector<Begin>& begins) REQUIRES(mutex_);
  void BeginReads(const Begin& begin) EXCLUDES(mutex_);
  void Arrive(const Begin& begin, bool is_mask, std::optional<image::Accepted<Bytes>> bytes) EXCLUDES(mutex_);
  void MakeRow(Draft& draft, int64_t row, SampleMaker& maker) EXCLUDES(mutex_);
  void AddCounts(SampleMaker& maker, Duration& cpu) REQUIRES(mutex_);
  void NoteBad(Draft& draft, int64_t row, int64_t sample, image::Reject reject) EXCLUDES(mutex_);
  void NoteFailure(Draft& draft, int64_t row, Error error) EXCLUDES(mutex_);
  Result<std::optional<Batch>> Deliver(Draft draft);
  void Compact(Draft& draft) const;
  Status EndEpoch();

  const Clock& clock_;
  const SampleSources from_;
  const size_t masks_begin_, mask_bytes_;  // in a batch's memory; of one mask
  const std::shared_ptr<BufferPool> pool_;
  int depth_ = 0;                                    // of the reads ahead; 0: none. Set before threads start
  std::unique_ptr<SampleReads> reads_, mask_reads_;  // likewise

  // The consumer's: where it stands.
  int64_t epoch_ = 0, position_ = 0;
  int64_t rows_of_epoch_ = 0, bad_of_epoch_ = 0;
  std::vector<BadSample> named_;
  bool started_ = false;
  pid_t owner_ = 0;

  mutable Mutex mutex_;
  CondVar work_, ready_;                                          // for the threads; for the consumer
  std::deque<std::unique_ptr<Draft>> drafts_ GUARDED_BY(mutex_);  // by order
  int ahead_ GUARDED_BY(mutex_) = 0;  // rows that are read, or were read and wait for a thread
  int64_t next_epoch_ GUARDED_BY(mutex_) = 0, next_position_ GUARDED_BY(mutex_) = 0;  // of the next draft
  std::shared_ptr<const EpochOrder> order_ GUARDED_BY(mutex_);                        // of next_epoch_
  std::optional<Error> out_of_memory_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  FeedCounters counters_ GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

}  // namespace weir::feed
