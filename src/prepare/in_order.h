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
// `window` numbers are between the one the consumer waits for and the one handed out last, which bounds the
// memory. Thread-safe.
template <typename Value>
class InOrder {
 public:
  InOrder(int64_t count, int64_t window) : count_(count), slots_(static_cast<size_t>(window)) {
    CHECK(window > 0);
  }

  // Workers: the next number; waits while the window is full. nullopt once there is no more, or after Stop.
  std::optional<int64_t> Take() {
    MutexLock lock(mutex_);
    while (!stopped_ && taken_ < count_ && taken_ >= consumed_ + Window()) room_.Wait(mutex_);
    if (stopped_ || taken_ >= count_) return std::nullopt;
    return taken_++;
  }

  void Put(int64_t index, Value value) {
    MutexLock lock(mutex_);
    slots_[static_cast<size_t>(index % Window())] = std::move(value);
    if (index == consumed_) ready_.NotifyOne();
  }

  // The consumer: the result of the next number. REQUIRES: fewer than `count` calls so far, and no Stop.
  Value Next() {
    MutexLock lock(mutex_);
    std::optional<Value>& slot = slots_[static_cast<size_t>(consumed_ % Window())];
    while (!slot) ready_.Wait(mutex_);
    Value value = *std::move(slot);
    slot.reset();
    consumed_ += 1;
    room_.NotifyOne();
    return value;
  }

  // The workers get no more numbers.
  void Stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    room_.NotifyAll();
  }

 private:
  int64_t Window() const REQUIRES(mutex_) { return static_cast<int64_t>(slots_.size()); }

  const int64_t count_;
  Mutex mutex_;
  CondVar room_, ready_;
  std::vector<std::optional<Value>> slots_ GUARDED_BY(mutex_);
  int64_t taken_ GUARDED_BY(mutex_) = 0;     // numbers handed out
  int64_t consumed_ GUARDED_BY(mutex_) = 0;  // results handed over
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace weir::prepare
