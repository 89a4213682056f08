// Player's slots that each follow an answer with the next request.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "load/generator/player.h"

namespace weir::load {

// Closed loop, async: sends from these slots in turn, until the answers of all are awaited or the run is
// over. An answer may come before Submit returns: then this loop goes on with its place, and otherwise
// whoever brings it.
void Player::KeepSlots(std::deque<Slot*> slots) {
  while (!slots.empty()) {
    Slot& slot = *slots.front();
    slots.pop_front();
    if (Park(slot)) continue;
    if (!Plan(slot, clock_.Now())) {
      EndDriving();
      continue;
    }
    slot.half_done = false;
    Submit(slot);
    if (slot.half_done.exchange(true)) slots.push_back(&slot);
  }
}

// Closed loop, sync.
void Player::WaitForAnswers(Slot& slot) {
  while (Plan(slot, clock_.Now())) {
    Submit(slot);
    {
      MutexLock lock(mutex_);
      while (!slot.answered) slot.changed.Wait(mutex_);
    }
    Rest(slot);
  }
  EndDriving();
}

void Player::Rest(Slot& slot) {
  if (slot.rest == Duration{}) return;
  const Instant until = clock_.Now() + slot.rest;
  MutexLock lock(mutex_);
  while (ledger_.phase() != Ledger::Phase::kOver && clock_.Now() < until) freed_.WaitUntil(mutex_, until);
}

// Async: true where the place has to rest first; "load-0" then goes on with it.
bool Player::Park(Slot& slot) {
  const Duration rest = std::exchange(slot.rest, Duration{});
  if (rest == Duration{}) return false;
  const Instant until = clock_.Now() + rest;
  MutexLock lock(mutex_);
  if (ledger_.phase() == Ledger::Phase::kOver) return false;
  resting_.emplace(until, &slot);
  freed_.NotifyAll();
  return true;
}

// All of them once the run is over.
std::deque<Slot*> Player::TakeRested() {
  const Instant now = clock_.Now();
  std::deque<Slot*> slots;
  MutexLock lock(mutex_);
  const bool is_over = ledger_.phase() == Ledger::Phase::kOver;
  while (!resting_.empty() && (is_over || resting_.begin()->first <= now)) {
    slots.push_back(resting_.begin()->second);
    resting_.erase(resting_.begin());
  }
  return slots;
}

Instant Player::NextRested() const { return resting_.empty() ? Instant::max() : resting_.begin()->first; }

Instant Player::NextStep() const {
  MutexLock lock(mutex_);
  return std::min(clock_.Now() + kStep, NextRested());
}

// Until one is due, or the run is over.
void Player::WaitForRested() {
  while (ledger_.phase() != Ledger::Phase::kOver && clock_.Now() < NextRested()) {
    if (resting_.empty()) {
      freed_.Wait(mutex_);
    } else {
      freed_.WaitUntil(mutex_, NextRested());
    }
  }
}

// Async, on "load-0": drives where that is its part, and goes on with slots that have rested, until the run
// is over and, where it drives, all is answered.
void Player::TendPlaces() {
  bool done = false;
  while (!done && !given_up_) {
    KeepSlots(TakeRested());
    if (hooks_.drive) Drive(NextStep(), {});
    MutexLock lock(mutex_);
    if (!hooks_.drive) WaitForRested();
    const bool is_over = ledger_.phase() == Ledger::Phase::kOver;
    done = is_over && resting_.empty() && (!hooks_.drive || ledger_.in_flight() == 0);
  }
  KeepSlots(TakeRested());
}

void Player::StartClosed(const Concurrency& load) {
  std::deque<Slot*> slots;
  {
    MutexLock lock(mutex_);
    driving_ = load.in_flight + (is_sync_ ? 0 : 1);
    for (int i = 0; i < load.in_flight; ++i) slots.push_back(&slots_.emplace_back());
  }
  if (!is_sync_) {
    threads_.push_back(StartThread("load-0", [this, slots = std::move(slots)](std::stop_token) mutable {
      KeepSlots(std::move(slots));
      TendPlaces();
      undriven_ = true;
      EndDriving();
    }));
    return;
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    threads_.push_back(StartThread(fmt::format("load-{}", i),
                                   [this, slot = slots[i]](std::stop_token) { WaitForAnswers(*slot); }));
  }
}

}  // namespace weir::load
