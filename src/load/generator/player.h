// Plays a scenario: the slots of its requests, the threads that keep them, and the account of all.
// Private to generator.h. player.cc takes a request from its plan to its end, closed_loop.cc and open_loop.cc
// decide who sends the next, generator.cc starts and ends the run.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "load/generator/backoff.h"
#include "load/generator/completion_predictor.h"
#include "load/generator/generator.h"
#include "load/generator/ledger.h"
#include "load/generator/spin_waiter.h"

namespace weir::load {

// How soon "load-0" sees that the run is over.
inline constexpr Duration kStep = 20ms;

// A place for one request at a time.
struct Slot {
  Ledger::Ticket ticket;
  Instant planned;
  uint32_t request = 0;
  // Async, closed loop: whoever comes second of Submit's return and the answer goes on with this place.
  std::atomic<bool> half_done = false;
  bool answered = false;  // sync: guarded by Player::mutex_
  CondVar changed;
  // Closed loop: what the next request waits for, set before whoever goes on with the place does.
  Backoff backoff;
  Duration rest{};
  std::optional<Instant> free_since;  // nothing: it has just been made, or rested
};

// Play of generator.h: Start, Watch, Sum, one after the other on its thread.
class Player {
 public:
  Player(infer::Service& service, const Requests& requests, const Clock& clock, const PlayOptions& options,
         const PlayHooks& hooks)
      : service_(service),
        requests_(requests),
        clock_(clock),
        options_(options),
        hooks_(hooks),
        begin_(options.begin.value_or(clock.Now())),
        ledger_({.warm_up = options.warm_up,
                 .warm_up_requests = options.warm_up_requests,
                 .length = options.length,
                 .requests = options.requests,
                 .windows = HasProfile(options.scenario)},
                begin_) {}

  Status Start();
  void Watch(const std::stop_token& stop);
  RunOutcome Sum();

 private:
  void StartClosed(const Concurrency& load);
  void StartOpen(Schedule schedule, int most);
  void KeepSlots(std::deque<Slot*> places);
  void WaitForAnswers(Slot& slot);
  void Rest(Slot& slot) EXCLUDES(mutex_);
  bool Park(Slot& slot) EXCLUDES(mutex_);
  std::deque<Slot*> TakeRested() EXCLUDES(mutex_);
  Instant NextRested() const REQUIRES(mutex_);
  Instant NextStep() const EXCLUDES(mutex_);
  void Drive(Instant until, Duration awake);
  void WaitForRested() REQUIRES(mutex_);
  void TendPlaces() EXCLUDES(mutex_);
  void KeepSchedule(Schedule schedule, int most);

  bool Plan(Slot& slot, Instant planned) EXCLUDES(mutex_);
  void Submit(Slot& slot);
  void Answered(Slot& slot, const Result<infer::Response>& result, const infer::Times& times);
  Outcome Check(const Slot& slot, Instant done, const Result<infer::Response>& result,
                std::string& fault) const;
  void Keep(const Sample& sample, bool measured, const std::string& fault) REQUIRES(mutex_);

  void WaitUntil(Instant when);  // or until the run is over
  Slot* FreeSlot(int most) EXCLUDES(mutex_);
  void DriveUntilAnswered() EXCLUDES(mutex_);
  void EndDriving() EXCLUDES(mutex_);
  bool IsOver() const EXCLUDES(mutex_);
  bool Wait(Instant until) EXCLUDES(mutex_);
  void EndIfUp(Instant now, bool interrupted) REQUIRES(mutex_);
  void HandOverSamples() EXCLUDES(mutex_);
  void TellProgress() EXCLUDES(mutex_);

  infer::Service& service_;
  const Requests& requests_;
  const Clock& clock_;
  const PlayOptions& options_;
  const PlayHooks& hooks_;
  const bool is_open_ = std::holds_alternative<Rate>(options_.scenario);
  const bool is_sync_ =
      !is_open_ && std::get<Concurrency>(options_.scenario).wait == Concurrency::Wait::kSync;
  const Instant begin_;
  std::optional<SpinWaiter> waiter_;     // of "load-0"
  std::atomic<Duration::rep> spun_ = 0;  // by "load-0"
  CompletionPredictor expectation_;      // of "load-0", where it drives
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> undriven_ = false;  // "load-0" drives no more

  mutable Mutex mutex_;
  CondVar changed_;  // the phase, or the last request
  CondVar freed_;    // a place of the open loop, or the phase
  Ledger ledger_ GUARDED_BY(mutex_);
  int driving_ GUARDED_BY(mutex_) = 0;  // threads and places that may still send
  RunOutcome played_ GUARDED_BY(mutex_);
  std::array<bool, kOutcomes> told_ GUARDED_BY(mutex_){};
  std::vector<Sample> samples_ GUARDED_BY(mutex_);
  std::deque<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<Slot*> free_ GUARDED_BY(mutex_);
  // Closed loop, async: places that wait after a failure, for "load-0" to go on with. None once it is over.
  std::multimap<Instant, Slot*> resting_ GUARDED_BY(mutex_);

  Instant told_at_;
  int64_t told_answers_ = 0;
  std::vector<Sample> handed_over_;

  std::vector<std::jthread> threads_;
};

}  // namespace weir::load
