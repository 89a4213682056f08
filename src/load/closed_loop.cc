// Player's places that each follow an answer with the next request.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "load/player.h"

namespace weir::load {

// Closed loop, async: sends from these places in turn, until the answers of all are awaited or the run is
// over. An answer may come before Submit returns: then this loop goes on with its place, and otherwise
// whoever brings it.
void Player::KeepPlaces(std::deque<Flight*> places) {
  while (!places.empty()) {
    Flight& flight = *places.front();
    places.pop_front();
    if (Park(flight)) continue;
    if (!Plan(flight, clock_.Now())) {
      EndDriving();
      continue;
    }
    flight.half_done = false;
    Submit(flight);
    if (flight.half_done.exchange(true)) places.push_back(&flight);
  }
}

// Closed loop, sync.
void Player::WaitForAnswers(Flight& flight) {
  while (Plan(flight, clock_.Now())) {
    Submit(flight);
    {
      MutexLock lock(mutex_);
      while (!flight.answered) flight.changed.Wait(mutex_);
    }
    Rest(flight);
  }
  EndDriving();
}

void Player::Rest(Flight& flight) {
  if (flight.rest == Duration{}) return;
  const Instant until = clock_.Now() + flight.rest;
  MutexLock lock(mutex_);
  while (ledger_.phase() != Ledger::Phase::kOver && clock_.Now() < until) freed_.WaitUntil(mutex_, until);
}

// Async: true where the place has to rest first; "load-0" then goes on with it.
bool Player::Park(Flight& flight) {
  const Duration rest = std::exchange(flight.rest, Duration{});
  if (rest == Duration{}) return false;
  const Instant until = clock_.Now() + rest;
  MutexLock lock(mutex_);
  if (ledger_.phase() == Ledger::Phase::kOver) return false;
  resting_.emplace(until, &flight);
  freed_.NotifyAll();
  return true;
}

// All of them once the run is over.
std::deque<Flight*> Player::TakeRested() {
  const Instant now = clock_.Now();
  std::deque<Flight*> places;
  MutexLock lock(mutex_);
  const bool is_over = ledger_.phase() == Ledger::Phase::kOver;
  while (!resting_.empty() && (is_over || resting_.begin()->first <= now)) {
    places.push_back(resting_.begin()->second);
    resting_.erase(resting_.begin());
  }
  return places;
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

// Async, on "load-0": drives where that is its part, and goes on with places that have rested, until the run
// is over and, where it drives, all is answered.
void Player::TendPlaces() {
  bool done = false;
  while (!done && !given_up_) {
    KeepPlaces(TakeRested());
    if (hooks_.drive) Drive(NextStep(), {});
    MutexLock lock(mutex_);
    if (!hooks_.drive) WaitForRested();
    const bool is_over = ledger_.phase() == Ledger::Phase::kOver;
    done = is_over && resting_.empty() && (!hooks_.drive || ledger_.in_flight() == 0);
  }
  KeepPlaces(TakeRested());
}

void Player::StartClosed(const Concurrency& load) {
  std::deque<Flight*> places;
  {
    MutexLock lock(mutex_);
    driving_ = load.in_flight + (is_sync_ ? 0 : 1);
    for (int i = 0; i < load.in_flight; ++i) places.push_back(&flights_.emplace_back());
  }
  if (!is_sync_) {
    threads_.push_back(StartThread("load-0", [this, places = std::move(places)](std::stop_token) mutable {
      KeepPlaces(std::move(places));
      TendPlaces();
      undriven_ = true;
      EndDriving();
    }));
    return;
  }
  for (size_t i = 0; i < places.size(); ++i) {
    threads_.push_back(StartThread(fmt::format("load-{}", i),
                                   [this, flight = places[i]](std::stop_token) { WaitForAnswers(*flight); }));
  }
}

}  // namespace weir::load
