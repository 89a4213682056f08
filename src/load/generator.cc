#include "load/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "load/backoff.h"
#include "load/ledger.h"
#include "load/pacer.h"
#include "load/thread_use.h"

namespace weir::load {
namespace {

constexpr Duration kProgressEvery = 250ms;
constexpr Duration kStep = 20ms;              // how soon "load-0" sees that the run is over
constexpr size_t kMostSamplesKept = 1 << 20;  // between two calls of hooks.samples

// A place for one request at a time.
struct Flight {
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
};

class Player {
 public:
  Player(infer::Service& service, const Requests& requests, const Clock& clock, const PlayOptions& options,
         const PlayHooks& hooks)
      : service_(service),
        requests_(requests),
        clock_(clock),
        options_(options),
        hooks_(hooks),
        begin_(clock.Now()),
        ledger_({.warm_up = options.warm_up,
                 .warm_up_requests = options.warm_up_requests,
                 .length = options.length,
                 .requests = options.requests},
                begin_) {}

  Status Start();
  void Watch(const std::stop_token& stop);
  Played Sum();

 private:
  void StartClosed(const Concurrency& load);
  void StartOpen(Schedule schedule, int most);
  void KeepPlaces(std::deque<Flight*> places);
  void WaitForAnswers(Flight& flight);
  void Rest(Flight& flight) EXCLUDES(mutex_);
  bool Park(Flight& flight) EXCLUDES(mutex_);
  std::deque<Flight*> TakeRested() EXCLUDES(mutex_);
  Instant NextRested() const REQUIRES(mutex_);
  Instant NextStep() const EXCLUDES(mutex_);
  void WaitForRested() REQUIRES(mutex_);
  void TendPlaces() EXCLUDES(mutex_);
  void KeepSchedule(Schedule schedule, int most);

  bool Plan(Flight& flight, Instant planned) EXCLUDES(mutex_);
  void Submit(Flight& flight);
  void Answered(Flight& flight, const Result<infer::Response>& result, const infer::Times& times);
  Outcome Check(const Flight& flight, Instant now, const Result<infer::Response>& result,
                std::string& fault) const;
  void Keep(const Sample& sample, bool measured, const std::string& fault) REQUIRES(mutex_);

  void WaitUntil(Instant when);  // or until the run is over
  Flight* FreeFlight(int most) EXCLUDES(mutex_);
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
  std::optional<Pacer> pacer_;           // of "load-0"
  std::atomic<Duration::rep> spun_ = 0;  // by "load-0"
  std::atomic<bool> given_up_ = false;

  mutable Mutex mutex_;
  CondVar changed_;  // the phase, or the last request
  CondVar freed_;    // a place of the open loop, or the phase
  Ledger ledger_ GUARDED_BY(mutex_);
  int driving_ GUARDED_BY(mutex_) = 0;  // threads and places that may still send
  Played played_ GUARDED_BY(mutex_);
  std::array<bool, kOutcomes> told_ GUARDED_BY(mutex_){};
  std::vector<Sample> samples_ GUARDED_BY(mutex_);
  std::deque<Flight> flights_ GUARDED_BY(mutex_);
  std::vector<Flight*> free_ GUARDED_BY(mutex_);
  // Closed loop, async: places that wait after a failure, for "load-0" to go on with. None once it is over.
  std::multimap<Instant, Flight*> resting_ GUARDED_BY(mutex_);

  Instant told_at_;
  int64_t told_answers_ = 0;
  std::vector<Sample> handed_over_;

  std::vector<std::jthread> threads_;
};

bool Player::Plan(Flight& flight, Instant planned) {
  const Instant now = clock_.Now();
  MutexLock lock(mutex_);
  const Ledger::Phase before = ledger_.phase();
  const auto ticket = ledger_.Plan(planned, now);
  if (ledger_.phase() != before) {
    changed_.NotifyAll();
    freed_.NotifyAll();
  }
  if (!ticket) return false;
  flight.ticket = *ticket;
  flight.planned = planned;
  flight.request = static_cast<uint32_t>(ticket->number % std::ssize(requests_.pool));
  flight.answered = false;
  return true;
}

void Player::Submit(Flight& flight) {
  infer::Call call;
  call.request = requests_.pool[flight.request];
  if (options_.timeout > Duration{}) call.request.deadline = flight.ticket.taken + options_.timeout;
  call.times.planned = flight.planned;
  call.completion =
      infer::Completion([this, &flight](const Result<infer::Response>& result, const infer::Times& times) {
        Answered(flight, result, times);
      });
  service_.Submit(std::move(call));
}

Outcome Player::Check(const Flight& flight, Instant now, const Result<infer::Response>& result,
                      std::string& fault) const {
  if (options_.timeout > Duration{} && now - flight.ticket.taken > options_.timeout)
    return Outcome::kTimedOut;
  if (!result) return OutcomeOf(result.error().code);
  if (!requests_.check) return Outcome::kAnswered;
  auto wrong = requests_.check(flight.request, *result);
  if (!wrong) return Outcome::kAnswered;
  fault = *std::move(wrong);
  return Outcome::kWrongAnswer;
}

void Player::Answered(Flight& flight, const Result<infer::Response>& result, const infer::Times& times) {
  const bool goes_on = !is_open_ && !is_sync_;  // once the last answer is counted the player may be gone
  const Instant now = clock_.Now();
  std::string fault;
  if (!result) fault = result.error().message;
  const Sample sample{.planned = flight.planned,
                      .sent = std::max(flight.ticket.taken, times.sent.value_or(flight.ticket.taken)),
                      .first_byte = times.first_byte.value_or(now),
                      .done = now,
                      .request = flight.request,
                      .outcome = Check(flight, now, result, fault)};
  flight.rest = flight.backoff.After(sample.outcome);
  {
    MutexLock lock(mutex_);
    ledger_.Ended(flight.ticket, sample);
    Keep(sample, flight.ticket.measured, fault);
    if (is_open_) {
      free_.push_back(&flight);
      if (!hooks_.drive) freed_.NotifyOne();
    }
    if (is_sync_) {
      flight.answered = true;
      flight.changed.NotifyOne();
    }
    if (ledger_.in_flight() == 0 && ledger_.phase() == Ledger::Phase::kOver) changed_.NotifyAll();
  }
  if (goes_on && flight.half_done.exchange(true)) KeepPlaces({&flight});
}

void Player::Keep(const Sample& sample, bool measured, const std::string& fault) {
  const auto kind = static_cast<size_t>(sample.outcome);
  if (sample.outcome != Outcome::kAnswered && !std::exchange(told_[kind], true)) {
    played_.errors.push_back(fmt::format("{}: {}", ToString(sample.outcome),
                                         fault.empty() ? "it came after --request-timeout-ms" : fault));
  }
  if (!measured || !hooks_.samples) return;
  if (samples_.size() < kMostSamplesKept) {
    samples_.push_back(sample);
  } else {
    played_.samples_lost += 1;
  }
}

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

void Player::EndDriving() {
  MutexLock lock(mutex_);
  --driving_;
  changed_.NotifyAll();
}

bool Player::IsOver() const {
  MutexLock lock(mutex_);
  return ledger_.phase() == Ledger::Phase::kOver;
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
    if (hooks_.drive) hooks_.drive(NextStep());
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
      EndDriving();
    }));
    return;
  }
  for (size_t i = 0; i < places.size(); ++i) {
    threads_.push_back(StartThread(fmt::format("load-{}", i),
                                   [this, flight = places[i]](std::stop_token) { WaitForAnswers(*flight); }));
  }
}

void Player::StartOpen(Schedule schedule, int most) {
  {
    MutexLock lock(mutex_);
    driving_ = 1;
  }
  threads_.push_back(
      StartThread("load-0", [this, schedule = std::move(schedule), most](std::stop_token) mutable {
        KeepSchedule(std::move(schedule), most);
        DriveUntilAnswered();
        EndDriving();
      }));
}

// Nothing when the run is over.
Flight* Player::FreeFlight(int most) {
  while (true) {
    {
      MutexLock lock(mutex_);
      const auto none = [&]() REQUIRES(mutex_) { return free_.empty() && std::ssize(flights_) >= most; };
      while (none() && !hooks_.drive && ledger_.phase() != Ledger::Phase::kOver) freed_.Wait(mutex_);
      if (ledger_.phase() == Ledger::Phase::kOver) return nullptr;
      if (!free_.empty()) {
        Flight* const flight = free_.back();
        free_.pop_back();
        return flight;
      }
      if (!none()) return &flights_.emplace_back();
    }
    hooks_.drive(clock_.Now() + 100us);
  }
}

void Player::WaitUntil(Instant when) {
  {
    MutexLock lock(mutex_);
    if (ledger_.phase() == Ledger::Phase::kMeasuring) when = std::min(when, ledger_.to());
  }
  if (hooks_.drive) {
    Instant next;
    do {
      next = std::min(when, clock_.Now() + kStep);
      spun_ += hooks_.drive(next).count();
    } while (next < when && !IsOver());
    return;
  }
  {
    MutexLock lock(mutex_);
    while (ledger_.phase() != Ledger::Phase::kOver && when - clock_.Now() > kStep)
      freed_.WaitUntil(mutex_, when - kStep / 2);
    if (ledger_.phase() == Ledger::Phase::kOver) return;
  }
  pacer_->WaitUntil(when);
  spun_ = pacer_->spun().count();
}

// The schedule is never moved: what cannot leave at its moment leaves late, and what is left at the end is
// unsent.
void Player::KeepSchedule(Schedule schedule, int most) {
  pacer_.emplace(clock_);  // it makes this thread's timers exact, also where the service is driven
  Instant planned = begin_ + schedule.Next();
  while (true) {
    WaitUntil(planned);
    Flight* const flight = FreeFlight(most);
    if (!flight || !Plan(*flight, planned)) break;
    Submit(*flight);
    planned = begin_ + schedule.Next();
  }
  MutexLock lock(mutex_);
  while (ledger_.Unsent(planned)) planned = begin_ + schedule.Next();
}

void Player::DriveUntilAnswered() {
  if (!hooks_.drive) return;
  bool done = false;
  while (!done && !given_up_) {
    hooks_.drive(clock_.Now() + kStep);
    MutexLock lock(mutex_);
    done = ledger_.in_flight() == 0 && ledger_.phase() == Ledger::Phase::kOver;
  }
}

void Player::HandOverSamples() {
  if (!hooks_.samples) return;
  {
    MutexLock lock(mutex_);
    std::swap(samples_, handed_over_);
  }
  if (!handed_over_.empty()) hooks_.samples(handed_over_);
  handed_over_.clear();
}

void Player::TellProgress() {
  if (!hooks_.progress) return;
  const Instant now = clock_.Now();
  Progress progress;
  progress.elapsed_s = Seconds(now - begin_);
  {
    MutexLock lock(mutex_);
    progress.answered = ledger_.tally().answered();
    progress.failed = ledger_.tally().failed();
    if (const auto p99 = ledger_.tally().response.Quantile(0.99)) progress.p99 = Duration(*p99);
  }
  progress.rate =
      static_cast<double>(progress.answered - told_answers_) / std::max(1e-9, Seconds(now - told_at_));
  told_answers_ = progress.answered;
  told_at_ = now;
  hooks_.progress(progress);
}

// For a change, some time at most. True once all is over.
bool Player::Wait(Instant until) {
  MutexLock lock(mutex_);
  if (driving_ > 0 || ledger_.in_flight() > 0) changed_.WaitUntil(mutex_, until);
  return driving_ == 0 && ledger_.in_flight() == 0;
}

// Ends what does not end by itself: a server that answers nothing leaves a closed loop nothing to plan.
void Player::EndIfUp(Instant now, bool interrupted) {
  if (ledger_.phase() == Ledger::Phase::kOver) return;
  const bool warming = ledger_.phase() == Ledger::Phase::kWarmUp;
  Instant up = warming ? begin_ + options_.warm_up + options_.length : ledger_.to();
  if (options_.requests > 0 || (warming && options_.warm_up_requests > 0))
    up = ledger_.last_change() + options_.warm_up + options_.drain;
  if (interrupted) played_.interrupted = true;
  if (!interrupted && now < up + kStep) return;
  ledger_.End(now);
  freed_.NotifyAll();
}

Status Player::Start() {
  if (const auto* rate = std::get_if<Rate>(&options_.scenario)) {
    StartOpen(TRY(Schedule::Create(rate->arrivals, rate->per_second, options_.seed)), rate->most_in_flight);
  } else {
    StartClosed(std::get<Concurrency>(options_.scenario));
  }
  return {};
}

void Player::Watch(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  Duration cpu_before{};
  Duration::rep spun_before = 0;
  ThreadUse use;
  bool measuring = false, measured = false, gave_up = false, over = false;
  Instant ended;
  told_at_ = clock_.Now();
  Instant next = told_at_ + kProgressEvery;
  while (!over) {
    over = Wait(next);
    const Instant now = clock_.Now();
    bool has_begun = false, has_ended = false, stands_still = false;
    {
      MutexLock lock(mutex_);
      EndIfUp(now, stop.stop_requested());
      has_begun = ledger_.phase() != Ledger::Phase::kWarmUp;
      has_ended = ledger_.finished();
      stands_still = driving_ == 0;
    }
    if (has_begun && !std::exchange(measuring, true)) {
      cpu_before = ProcessCpuTime();
      spun_before = spun_;
      use = ReadThreadUse();
      if (hooks_.measuring) hooks_.measuring();
    }
    if (has_ended && !std::exchange(measured, true)) {
      ended = now;
      const Duration cpu = ProcessCpuTime() - cpu_before;
      const Duration spun(spun_ - spun_before);
      const Busiest busiest = BusiestThread(use, ReadThreadUse(), {"client", "load-"}, spun);
      if (hooks_.measured) hooks_.measured();
      MutexLock lock(mutex_);
      played_.spin_s = Seconds(spun);
      played_.cpu_s = std::max(0.0, Seconds(cpu - spun));
      played_.busiest_thread = busiest.share;
      played_.busiest_thread_name = busiest.name;
    }
    if (measured && now >= ended + options_.drain) given_up_ = true;
    const bool may_give_up = hooks_.drive ? stands_still : measured;
    if (given_up_ && !over && may_give_up && hooks_.give_up && !std::exchange(gave_up, true))
      hooks_.give_up();
    if (now >= next || over) {
      HandOverSamples();
      if (!measured) TellProgress();
      next = now + kProgressEvery;
    }
  }
  threads_.clear();
  HandOverSamples();
}

Played Player::Sum() {
  MutexLock lock(mutex_);
  played_.tally = ledger_.tally();
  played_.by_count = options_.requests > 0;
  played_.measured_s = Seconds(ledger_.to() - ledger_.from());
  played_.warm_up_s = Seconds(ledger_.from() - begin_);
  played_.warm_up_requests = ledger_.warm_up_requests();
  return std::move(played_);
}

Status CheckOptions(const Requests& requests, const PlayOptions& options, const PlayHooks& hooks) {
  const auto invalid = [](const char* message) -> Status {
    return Fail(ErrorCode::kInvalidArgument, message);
  };
  if (requests.pool.empty()) return invalid("there is no request to send");
  if (options.requests == 0 && options.length < 1ms)
    return invalid("a run needs a length of 1 ms or more, or a number of requests");
  if (const auto* load = std::get_if<Concurrency>(&options.scenario)) {
    if (load->in_flight < 1) return invalid("a concurrency is at least 1");
    if (hooks.drive && load->wait == Concurrency::Wait::kSync)
      return invalid("threads that wait need a service with threads of its own");
  }
  return {};
}

}  // namespace

Result<Played> Play(infer::Service& service, const Requests& requests, const Clock& clock,
                    const PlayOptions& options, const PlayHooks& hooks, const std::stop_token& stop) {
  TRY_STATUS(CheckOptions(requests, options, hooks));
  Player player(service, requests, clock, options, hooks);
  TRY_STATUS(player.Start());
  player.Watch(stop);
  return player.Sum();
}

}  // namespace weir::load
