// Player's schedule, which waits for no answer.
#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "load/generator/player.h"

namespace weir::load {

void Player::StartOpen(Schedule schedule, int most) {
  {
    MutexLock lock(mutex_);
    driving_ = 1;
  }
  threads_.push_back(
      StartThread("load-0", [this, schedule = std::move(schedule), most](std::stop_token) mutable {
        KeepSchedule(std::move(schedule), most);
        DriveUntilAnswered();
        undriven_ = true;
        EndDriving();
      }));
}

// Nothing when the run is over.
Slot* Player::FreeSlot(int most) {
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto none = [&]() REQUIRES(mutex_) { return free_.empty() && std::ssize(slots_) >= most; };
      while (none() && !hooks_.drive && ledger_.phase() != Ledger::Phase::kOver) freed_.Wait(mutex_);
      if (ledger_.phase() == Ledger::Phase::kOver) return nullptr;
      if (!free_.empty()) {
        Slot* const slot = free_.back();
        free_.pop_back();
        return slot;
      }
      if (!none()) return &slots_.emplace_back();
    }
    hooks_.drive(clock_.Now() + 100us, 100us);
  }
}

void Player::WaitUntil(Instant when) {
  {
    MutexLock lock(mutex_);
    if (ledger_.phase() == Ledger::Phase::kMeasuring) when = std::min(when, ledger_.to());
  }
  if (hooks_.drive) {
    Instant now = clock_.Now();
    do {  // once at least: who is late reads what has come
      const bool is_near = when <= now + kStep;
      Drive(is_near ? when : now + kStep, is_near ? SpinWaiter::Near(when - now) : Duration{});
      now = clock_.Now();
    } while (now < when && !IsOver());
    return;
  }
  {
    MutexLock lock(mutex_);
    while (ledger_.phase() != Ledger::Phase::kOver && when - clock_.Now() > kStep)
      freed_.WaitUntil(mutex_, when - kStep / 2);
    if (ledger_.phase() == Ledger::Phase::kOver) return;
  }
  waiter_->WaitUntil(when);
  spun_ = waiter_->spun().count();
}

// The schedule is never moved: what cannot leave at its moment leaves late, and what is left at the end is
// unsent.
void Player::KeepSchedule(Schedule schedule, int most) {
  waiter_.emplace(clock_);  // it makes this thread's timers exact, also where the service is driven
  Instant planned = begin_ + schedule.Next();
  while (true) {
    WaitUntil(planned);
    Slot* const slot = FreeSlot(most);
    if (!slot || !Plan(*slot, planned)) break;
    Submit(*slot);
    planned = begin_ + schedule.Next();
  }
  MutexLock lock(mutex_);
  while (ledger_.Unsent(planned)) planned = begin_ + schedule.Next();
}

void Player::DriveUntilAnswered() {
  if (!hooks_.drive) return;
  bool done = false;
  while (!done && !given_up_) {
    hooks_.drive(clock_.Now() + kStep, {});
    MutexLock lock(mutex_);
    done = ledger_.in_flight() == 0 && ledger_.phase() == Ledger::Phase::kOver;
  }
}

}  // namespace weir::load
