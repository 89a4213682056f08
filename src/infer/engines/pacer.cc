#include "infer/engines/pacer.h"

#include <sys/prctl.h>

#include "base/thread.h"

namespace weir::infer {
namespace {

// How long before the moment the sleep ends: what a sleep with the least timer slack overshoots in most
// cases.
constexpr Duration kSpin = 25us;

}  // namespace

Pacer::Pacer(const Clock& clock) : clock_(clock) {
  thread_ = StartThread("pacer", [this](const std::stop_token&) { Pace(); });
}

Pacer::~Pacer() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyOne();
}

void Pacer::WaitUntil(Instant when) {
  Waiter self{.when = when, .due = false, .changed = {}};
  MutexLock lock(mutex_);
  waiters_.push(&self);
  if (waiters_.top() == &self) changed_.NotifyOne();
  while (!self.due) self.changed.Wait(mutex_);
}

void Pacer::Pace() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // ns, of this thread; the default is 50 us
  while (Waiter* waiter = TakeNearlyDue()) {
    SpinUntil(waiter->when);
    MutexLock lock(mutex_);
    waiter->due = true;
    waiter->changed.NotifyOne();  // under the lock: the waiter lives until it gets it
  }
}

Pacer::Waiter* Pacer::TakeNearlyDue() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (waiters_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    Waiter* const next = waiters_.top();
    const Instant wake = next->when - kSpin;
    if (clock_.Now() >= wake) {
      waiters_.pop();
      return next;
    }
    changed_.WaitUntil(mutex_, wake);
  }
  return nullptr;
}

void Pacer::SpinUntil(Instant when) {
  const Duration before = ThreadCpuTime();
  while (clock_.Now() < when) {
  }
  spin_.fetch_add((ThreadCpuTime() - before).count(), std::memory_order_relaxed);
}

}  // namespace weir::infer
