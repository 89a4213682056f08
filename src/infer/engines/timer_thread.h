// Wakes threads, and calls functions, at moments: more exactly than a sleep does.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace weir::infer {

// One thread, "pacer", that sleeps to shortly before the earliest moment waited for and spins through the
// rest. Thread-safe. `clock` must outlive it. Destroy it when nobody waits: what is not due then is dropped.
class TimerThread {
 public:
  explicit TimerThread(const Clock& clock);
  ~TimerThread();

  // Blocks the calling thread until `when`.
  void WaitUntil(Instant when);

  // Calls `function` at `when` on the pacing thread, which wakes nobody else meanwhile.
  using Function = std::move_only_function<void()>;
  void CallAt(Instant when, Function function);

  // CPU time that went into the spinning.
  Duration spin() const { return Duration(spin_.load(std::memory_order_relaxed)); }

 private:
  struct Due {
    Instant when;
    Function function;
  };
  void Pace();
  std::optional<Due> TakeNearlyDue();  // blocks until there is one; nothing when stopping
  void SpinUntil(Instant when);

  const Clock& clock_;
  std::atomic<Duration::rep> spin_{0};

  Mutex mutex_;
  CondVar changed_;
  std::vector<Due> waiting_ GUARDED_BY(mutex_);  // a heap, the earliest at its front
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::jthread thread_;
};

}  // namespace weir::infer
