// Samples that threads read for others, who wait for them no longer than a timeout.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "probe/storage_read.h"
#include "probe/storage_tally.h"

namespace weir::probe {

// Samples whose bytes are read by threads of this object. A read that hangs costs one thread, and another
// takes its place. Held by a shared_ptr, which those threads share. `clock` must outlive a thread that hangs.
class Originals : public std::enable_shared_from_this<Originals> {
 public:
  Originals(std::vector<StorageSample> samples, const ReadOptions& read, Duration timeout, const Clock& clock)
      : samples_(std::move(samples)), read_(read), timeout_(timeout), clock_(clock) {}

  Status Start(int threads);
  // Returns the bytes of a sample. Thread-safe. kIo also for a read that does not end within the timeout.
  Result<Bytes> Read(int64_t index);
  // Ends the threads; those in a read that hangs are left behind. REQUIRES: no Read is under way.
  ReadTally Finish();
  // Returns what was counted so far. Thread-safe.
  ReadTally Tally() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return tally_;
  }

 private:
  static constexpr Duration kLook = 50ms;
  struct Job {
    explicit Job(int64_t number) : index(number) {}
    const int64_t index;
    std::optional<Instant> begun;
    std::optional<Result<Bytes>> result;
    bool abandoned = false;
  };

  std::string NameOf(int64_t index) const;
  void Abandon(Job& job) REQUIRES(mutex_);
  Status StartReader() EXCLUDES(mutex_);
  void Serve(SampleReader& reader) EXCLUDES(mutex_);
  std::shared_ptr<Job> Take() EXCLUDES(mutex_);

  const std::vector<StorageSample> samples_;
  const ReadOptions read_;
  const Duration timeout_;
  const Clock& clock_;
  Mutex mutex_;
  CondVar work_, done_;
  std::deque<std::shared_ptr<Job>> jobs_ GUARDED_BY(mutex_);
  ReadTally tally_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_ GUARDED_BY(mutex_);
};

}  // namespace weir::probe
