#include "infer/engines/timer_thread.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "base/thread.h"

namespace weir::infer {
namespace {

// How long before the moment the sleep ends: what a sleep with the least timer slack overshoots in most
// cases.
constexpr Duration kSpin = 25us;

}  // namespace

TimerThread::TimerThread(const Clock& clock) : clock_(clock) {
  thread_ = StartThread("pacer", [this](const std::stop_token&) { Pace(); });
}

TimerThread::~TimerThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyOne();
}

void TimerThread::WaitUntil(Instant when) {
  Mutex mutex;
  CondVar changed;
  bool due = false;  // guarded by `mutex`
  CallAt(when, [&] {
    MutexLock lock(mutex);
    due = true;
    changed.NotifyOne();  // under the lock: who waits lives until it gets it
  });
  MutexLock lock(mutex);
  while (!due) changed.Wait(mutex);
}

void TimerThread::CallAt(Instant when, Function function) {
  MutexLock lock(mutex_);
  const bool earliest = waiting_.empty() || when < waiting_.front().when;
  waiting_.push_back({when, std::move(function)});
  std::ranges::push_heap(waiting_, std::ranges::greater{}, &Due::when);
  if (earliest) changed_.NotifyOne();
}

void TimerThread::Pace() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // ns, of this thread; the default is 50 us
  while (std::optional<Due> next = TakeNearlyDue()) {
    SpinUntil(next->when);
    next->function();
  }
}

std::optional<TimerThread::Due> TimerThread::TakeNearlyDue() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const Instant wake = waiting_.front().when - kSpin;
    if (clock_.Now() >= wake) {
      std::ranges::pop_heap(waiting_, std::ranges::greater{}, &Due::when);
      Due next = std::move(waiting_.back());
      waiting_.pop_back();
      return next;
    }
    changed_.WaitUntil(mutex_, wake);
  }
  return std::nullopt;
}

void TimerThread::SpinUntil(Instant when) {
  const Duration before = ThreadCpuTime();
  while (clock_.Now() < when) {
  }
  spin_.fetch_add((ThreadCpuTime() - before).count(), std::memory_order_relaxed);
}

}  // namespace weir::infer
