// Wakes threads at moments, more exactly than a sleep does.
#pragma once

#include <atomic>
#include <queue>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace weir::infer {

// One thread, "pacer", that sleeps to shortly before the earliest moment waited for and spins through the
// rest. Thread-safe. `clock` must outlive it. Destroy it when nobody waits.
class Pacer {
 public:
  explicit Pacer(const Clock& clock);
  ~Pacer();

  // Blocks the calling thread until `when`.
  void WaitUntil(Instant when);

  // CPU time that went into the spinning.
  Duration spin() const { return Duration(spin_.load(std::memory_order_relaxed)); }

 private:
  struct Waiter {
    Instant when;
    bool due = false;
    CondVar changed;
  };
  struct Later {
    bool operator()(const Waiter* a, const Waiter* b) const { return a->when > b->when; }
  };
  void Pace();
  Waiter* TakeNearlyDue();  // blocks until there is one; nullptr when stopping
  void SpinUntil(Instant when);

  const Clock& clock_;
  std::atomic<Duration::rep> spin_{0};

  Mutex mutex_;
  CondVar changed_;
  std::priority_queue<Waiter*, std::vector<Waiter*>, Later> waiters_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::jthread thread_;
};

}  // namespace weir::infer
