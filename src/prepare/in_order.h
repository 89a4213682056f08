// Work done by many threads, handed over in its order.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"

namespace weir::prepare {

// Hands out the numbers 0 to count - 1 to workers, and their results, in order, to one consumer. At most
// `window` numbers are between the one the consumer waits for and the one handed out last, and none is handed
// out while the results that wait hold more than `max_bytes`, but the one the consumer waits for: so the
// memory is bounded. Thread-safe.
template <typename Value>
class InOrder {
 public:
  InOrder(int64_t count, int64_t window, int64_t max_bytes)
      : count_(count), max_bytes_(max_bytes), slots_(static_cast<size_t>(window)) {
    CHECK(window > 0);
  }

  // Workers: the next number; waits while there is no room for its result. nullopt once there is no more, or
  // after Stop.
  std::optional<int64_t> Take() {
    MutexLock lock(mutex_);
    while (!stopped_ && taken_ < count_ && !HasRoom()) room_.Wait(mutex_);
    if (stopped_ || taken_ >= count_) return std::nullopt;
    return taken_++;
  }

  // The result of a number that was taken, which holds `bytes`.
  void Put(int64_t index, Value value, int64_t bytes) {
    MutexLock lock(mutex_);
    slots_[static_cast<size_t>(index % Window())] = {std::move(value), bytes};
    bytes_ += bytes;
    if (index == consumed_) ready_.NotifyOne();
  }

  // The consumer: the result of the next number. REQUIRES: fewer than `count` calls so far, and no Stop.
  Value Next() {
    MutexLock lock(mutex_);
    std::optional<Waiting>& slot = slots_[static_cast<size_t>(consumed_ % Window())];
    while (!slot) ready_.Wait(mutex_);
    Waiting waiting = *std::move(slot);
    slot.reset();
    const bool was_full = bytes_ > max_bytes_;
    bytes_ -= waiting.bytes;
    consumed_ += 1;
    if (was_full) {
      room_.NotifyAll();
    } else {
      room_.NotifyOne();
    }
    return std::move(waiting.value);
  }

  // The workers get no more numbers.
  void Stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    room_.NotifyAll();
  }

 private:
  struct Waiting {
    Value value;
    int64_t bytes = 0;
  };

  bool HasRoom() const REQUIRES(mutex_) {
    return taken_ == consumed_ || (taken_ < consumed_ + Window() && bytes_ <= max_bytes_);
  }
  int64_t Window() const REQUIRES(mutex_) { return static_cast<int64_t>(slots_.size()); }

  const int64_t count_, max_bytes_;
  Mutex mutex_;
  CondVar room_, ready_;
  std::vector<std::optional<Waiting>> slots_ GUARDED_BY(mutex_);
  int64_t bytes_ GUARDED_BY(mutex_) = 0;     // of the results that wait
  int64_t taken_ GUARDED_BY(mutex_) = 0;     // numbers handed out
  int64_t consumed_ GUARDED_BY(mutex_) = 0;  // results handed over
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace weir::prepare
