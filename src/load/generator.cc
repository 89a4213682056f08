#include "load/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "load/pacer.h"
#include "load/thread_use.h"

namespace weir::load {
namespace {

constexpr Duration kProgressEvery = 250ms;
constexpr size_t kMostSamplesKept = 1 << 20;  // between two calls of hooks.samples
constexpr size_t kErrorsKept = 8;
constexpr Duration kGrace = 10ms;  // a request planned for the last moment may leave so much after the end

// A place for one request at a time.
struct Flight {
  Instant planned, fired;
  uint32_t request = 0;
  bool measured = false;
  // Whoever comes second of Submit's return and the answer goes on with this place.
  std::atomic<bool> half_done = false;
  bool answered = false;  // sync: guarded by Player::mutex_
  CondVar changed;
};

class Player {
 public:
  Player(infer::Service& service, const Requests& requests, const Clock& clock, const PlayOptions& options,
         const PlayHooks& hooks)
      : service_(service), requests_(requests), clock_(clock), options_(options), hooks_(hooks) {}

  Result<Played> Run(const std::stop_token& stop);

 private:
  enum class Phase { kWarmUp, kMeasuring, kOver };

  void RunClosed(const Concurrency& load);
  Status RunOpen(const Rate& load);

  // Plans a request at `planned`, which moves the run from phase to phase. False: the run is over.
  bool Plan(Flight& flight, Instant planned) EXCLUDES(mutex_);
  bool IsDue(Instant planned, Instant now) const REQUIRES(mutex_);
  void Submit(Flight& flight);
  void Answered(Flight& flight, Result<infer::Response> result, const infer::Times& times);
  Outcome Check(const Flight& flight, const Result<infer::Response>& result) const;
  void Record(const Sample& sample, bool measured, const Error* error) REQUIRES(mutex_);
  void CountInFlight(int change, Instant now) REQUIRES(mutex_);
  Duration WithinMeasured(Instant from, Instant to) const REQUIRES(mutex_);

  // Closed loop, async: sends from these places in turn, until the answers of all are awaited or the run is
  // over.
  void Drive(std::deque<Flight*> places);
  void Wait(Flight& flight);  // closed loop, sync
  void EndDriving() EXCLUDES(mutex_);
  void KeepSchedule(Schedule schedule, int most);
  // Returns at `planned`, or when the run is over if that is sooner.
  void WaitUntil(Pacer& pacer, Instant planned) EXCLUDES(mutex_);
  Flight* FreeFlight(int most) EXCLUDES(mutex_);
  void Watch(const std::stop_token& stop);
  bool Step(Instant until) EXCLUDES(mutex_);
  void HandOverSamples() EXCLUDES(mutex_);
  void TellProgress() EXCLUDES(mutex_);
  void End(Instant now) REQUIRES(mutex_);
  void EndIfUp(Instant now, bool interrupted) REQUIRES(mutex_);

  infer::Service& service_;
  const Requests& requests_;
  const Clock& clock_;
  const PlayOptions& options_;
  const PlayHooks& hooks_;
  const bool is_open_ = std::holds_alternative<Rate>(options_.scenario);
  const bool is_sync_ =
      !is_open_ && std::get<Concurrency>(options_.scenario).wait == Concurrency::Wait::kSync;
  Instant begin_;
  std::stop_source given_up_;
  std::atomic<Duration::rep> spun_ = 0;  // by the one who keeps the schedule

  mutable Mutex mutex_;
  CondVar changed_;  // a phase, or the last request
  CondVar freed_;    // a place of the open loop
  Phase phase_ GUARDED_BY(mutex_) = Phase::kWarmUp;
  Instant from_ GUARDED_BY(mutex_), to_ GUARDED_BY(mutex_);  // the measured time
  Instant last_change_ GUARDED_BY(mutex_);                   // of in_flight_
  Instant last_done_ GUARDED_BY(mutex_);                     // of a measured request
  int in_flight_ GUARDED_BY(mutex_) = 0;
  int64_t planned_ GUARDED_BY(mutex_) = 0;       // all there were
  int64_t measured_ GUARDED_BY(mutex_) = 0;      // of these
  int64_t measured_out_ GUARDED_BY(mutex_) = 0;  // of these, not yet ended
  int driving_ GUARDED_BY(mutex_) = 0;           // threads and places that may still send
  Played played_ GUARDED_BY(mutex_);
  std::array<bool, kOutcomes> told_ GUARDED_BY(mutex_){};
  std::vector<Sample> samples_ GUARDED_BY(mutex_);
  std::deque<Flight> flights_ GUARDED_BY(mutex_);
  std::vector<Flight*> free_ GUARDED_BY(mutex_);

  Instant told_at_;
  int64_t told_answers_ = 0;
  std::vector<Sample> handed_over_;

  std::vector<std::jthread> threads_;
};

bool Player::IsDue(Instant planned, Instant now) const {
  if (phase_ != Phase::kMeasuring) return true;
  if (options_.requests > 0) return measured_ < options_.requests;
  return planned < to_ && now < to_ + kGrace;
}

bool Player::Plan(Flight& flight, Instant planned) {
  const Instant now = clock_.Now();
  MutexLock lock(mutex_);
  if (phase_ == Phase::kWarmUp && planned >= begin_ + options_.warm_up &&
      planned_ >= options_.warm_up_requests) {
    phase_ = Phase::kMeasuring;
    from_ = planned;
    to_ = options_.requests > 0 ? Instant::max() : planned + options_.length;
    last_change_ = std::max(last_change_, from_);
    played_.warm_up_requests = planned_;
    changed_.NotifyAll();
  }
  if (phase_ == Phase::kOver || !IsDue(planned, now)) {
    if (phase_ == Phase::kMeasuring) End(to_ == Instant::max() ? now : to_);
    return false;
  }
  CountInFlight(1, now);
  flight.planned = planned;
  flight.fired = now;
  flight.request = static_cast<uint32_t>((planned_ + options_.first_request) % std::ssize(requests_.pool));
  flight.measured = phase_ == Phase::kMeasuring;
  flight.answered = false;
  ++planned_;
  if (flight.measured) ++measured_, ++measured_out_;
  return true;
}

Duration Player::WithinMeasured(Instant from, Instant to) const {
  if (phase_ == Phase::kWarmUp) return {};
  return std::max(Duration{}, std::min(to, to_) - std::max(from, from_));
}

void Player::CountInFlight(int change, Instant now) {
  played_.tally.in_flight_seconds += in_flight_ * Seconds(WithinMeasured(last_change_, now));
  last_change_ = std::max(last_change_, now);
  in_flight_ += change;
}

// The measured time ends at `now` at the latest.
void Player::End(Instant now) {
  if (phase_ == Phase::kOver) return;
  if (phase_ == Phase::kWarmUp) from_ = now;
  to_ = std::min(phase_ == Phase::kWarmUp ? now : to_, now);
  phase_ = Phase::kOver;
  changed_.NotifyAll();
  freed_.NotifyAll();
}

void Player::Submit(Flight& flight) {
  infer::Call call;
  call.request = requests_.pool[flight.request];
  call.request.cancelled = given_up_.get_token();
  if (options_.timeout > Duration{}) call.request.deadline = flight.fired + options_.timeout;
  call.times.planned = flight.planned;
  call.completion =
      infer::Completion([this, &flight](Result<infer::Response> result, const infer::Times& times) {
        Answered(flight, std::move(result), times);
      });
  service_.Submit(std::move(call));
}

bool SameBytes(const infer::Tensor& got, const infer::Tensor& wanted) {
  return got.dtype == wanted.dtype && got.shape == wanted.shape &&
         std::ranges::equal(got.data.span(), wanted.data.span());
}

Outcome Player::Check(const Flight& flight, const Result<infer::Response>& result) const {
  if (!result) return OutcomeOf(result.error().code);
  if (requests_.expected.empty()) return Outcome::kAnswered;
  for (const infer::Tensor& wanted : requests_.expected[flight.request]) {
    const auto got = std::ranges::find(result->outputs, wanted.name, &infer::Tensor::name);
    if (got == result->outputs.end() || !SameBytes(*got, wanted)) return Outcome::kWrongAnswer;
  }
  return Outcome::kAnswered;
}

void Player::Answered(Flight& flight, Result<infer::Response> result, const infer::Times& times) {
  const Instant now = clock_.Now();
  Sample sample{.planned = flight.planned,
                .sent = std::max(flight.fired, times.sent.value_or(flight.fired)),
                .first_byte = times.first_byte.value_or(now),
                .done = now,
                .request = flight.request,
                .outcome = Check(flight, result)};
  {
    MutexLock lock(mutex_);
    if (phase_ != Phase::kWarmUp && now >= from_ && now < to_) {
      played_.tally.left += 1;
      played_.tally.sojourn_seconds += Seconds(WithinMeasured(flight.fired, now));
      if (sample.outcome == Outcome::kAnswered) {
        played_.tally.answered_within += 1;
        played_.tally.done_series.Add(now - from_, 1);
      }
    }
    CountInFlight(-1, now);
    Record(sample, flight.measured, result ? nullptr : &result.error());
    if (is_open_) {
      free_.push_back(&flight);
      freed_.NotifyOne();
    }
    if (is_sync_) {
      flight.answered = true;
      flight.changed.NotifyOne();
    }
    if (in_flight_ == 0 && phase_ == Phase::kOver) changed_.NotifyAll();
  }
  if (!is_open_ && !is_sync_ && flight.half_done.exchange(true)) Drive({&flight});
}

void Player::Record(const Sample& sample, bool measured, const Error* error) {
  const auto kind = static_cast<size_t>(sample.outcome);
  if (sample.outcome != Outcome::kAnswered && !std::exchange(told_[kind], true) &&
      played_.errors.size() < kErrorsKept) {
    played_.errors.push_back(fmt::format("{}: {}", ToString(sample.outcome),
                                         error ? error->message : "the outputs are not what was expected"));
  }
  if (!measured) return;
  --measured_out_;
  last_done_ = std::max(last_done_, sample.done);
  played_.tally.Add(sample, from_);
  if (!hooks_.samples) return;
  if (samples_.size() < kMostSamplesKept) {
    samples_.push_back(sample);
  } else {
    played_.samples_lost += 1;
  }
}

// An answer may come before Submit returns: then this loop goes on with its place, and otherwise whoever
// brings it.
void Player::Drive(std::deque<Flight*> places) {
  while (!places.empty()) {
    Flight& flight = *places.front();
    places.pop_front();
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

void Player::Wait(Flight& flight) {
  while (Plan(flight, clock_.Now())) {
    Submit(flight);
    MutexLock lock(mutex_);
    while (!flight.answered) flight.changed.Wait(mutex_);
  }
  EndDriving();
}

void Player::RunClosed(const Concurrency& load) {
  std::deque<Flight*> places;
  {
    MutexLock lock(mutex_);
    driving_ = load.in_flight;
    for (int i = 0; i < load.in_flight; ++i) places.push_back(&flights_.emplace_back());
  }
  if (!is_sync_) {
    threads_.push_back(StartThread(
        "load-0", [this, places = std::move(places)](std::stop_token) mutable { Drive(std::move(places)); }));
    return;
  }
  for (size_t i = 0; i < places.size(); ++i) {
    threads_.push_back(StartThread(fmt::format("load-{}", i),
                                   [this, flight = places[i]](std::stop_token) { Wait(*flight); }));
  }
}

Status Player::RunOpen(const Rate& load) {
  Schedule schedule = TRY(Schedule::Create(load.arrivals, load.per_second, options_.seed));
  {
    MutexLock lock(mutex_);
    driving_ = 1;
  }
  threads_.push_back(StartThread(
      "load-0", [this, schedule = std::move(schedule), most = load.most_in_flight](std::stop_token) mutable {
        KeepSchedule(std::move(schedule), most);
      }));
  return {};
}

// Nothing when the run is over.
Flight* Player::FreeFlight(int most) {
  MutexLock lock(mutex_);
  while (free_.empty() && std::ssize(flights_) >= most && phase_ != Phase::kOver) freed_.Wait(mutex_);
  if (phase_ == Phase::kOver) return nullptr;
  if (free_.empty()) return &flights_.emplace_back();
  Flight* const flight = free_.back();
  free_.pop_back();
  return flight;
}

void Player::WaitUntil(Pacer& pacer, Instant planned) {
  constexpr Duration kLong = 20ms;
  {
    MutexLock lock(mutex_);
    while (phase_ != Phase::kOver && std::min(planned, to_) - clock_.Now() > kLong)
      freed_.WaitUntil(mutex_, std::min(planned, to_) - kLong / 2);
    if (phase_ == Phase::kOver) return;
    planned = std::min(planned, to_);
  }
  pacer.WaitUntil(planned);
  spun_ = pacer.spun().count();
}

// The schedule is never moved: what cannot leave at its moment leaves late, and what is left at the end is
// unsent.
void Player::KeepSchedule(Schedule schedule, int most) {
  Pacer pacer(clock_);
  Instant planned = begin_ + schedule.Next();
  while (true) {
    WaitUntil(pacer, planned);
    Flight* const flight = FreeFlight(most);
    if (!flight || !Plan(*flight, planned)) break;
    Submit(*flight);
    planned = begin_ + schedule.Next();
  }
  {
    MutexLock lock(mutex_);
    for (; planned >= from_ && planned < to_; planned = begin_ + schedule.Next()) {
      ++measured_;
      played_.tally.ended[static_cast<size_t>(Outcome::kUnsent)] += 1;
    }
  }
  EndDriving();
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
  Progress progress;
  const Instant now = clock_.Now();
  progress.elapsed_s = Seconds(now - begin_);
  progress.length_s = Seconds(options_.warm_up + (options_.requests > 0 ? Duration{} : options_.length));
  {
    MutexLock lock(mutex_);
    progress.answered = played_.tally.answered();
    progress.failed = played_.tally.failed();
    if (const auto p99 = played_.tally.response.Quantile(0.99)) progress.p99 = Duration(*p99);
  }
  progress.rate =
      static_cast<double>(progress.answered - told_answers_) / std::max(1e-9, Seconds(now - told_at_));
  told_answers_ = progress.answered;
  told_at_ = now;
  hooks_.progress(progress);
}

// Waits for a change, some time at most. True once all is over.
bool Player::Step(Instant until) {
  MutexLock lock(mutex_);
  if (driving_ > 0 || in_flight_ > 0) changed_.WaitUntil(mutex_, until);
  return driving_ == 0 && in_flight_ == 0;
}

// Ends what does not end by itself: a server that answers nothing leaves a closed loop nothing to plan.
void Player::EndIfUp(Instant now, bool interrupted) {
  Instant up = to_;
  if (phase_ == Phase::kWarmUp) up = begin_ + options_.warm_up + options_.length;
  if (options_.requests > 0 || (phase_ == Phase::kWarmUp && options_.warm_up_requests > 0))
    up = last_change_ + options_.drain;
  if (phase_ != Phase::kOver && interrupted) played_.interrupted = true;
  if (interrupted || now >= up + 2 * kGrace) End(now);
}

void Player::Watch(const std::stop_token& stop) {
  Duration cpu_before{};
  Duration::rep spun_before = 0;
  ThreadUse use;
  bool measuring = false, measured = false, over = false;
  Instant ended;
  told_at_ = clock_.Now();
  Instant next = told_at_ + kProgressEvery;
  while (!over) {
    over = Step(next);
    const Instant now = clock_.Now();
    bool has_begun = false, has_ended = false;
    {
      MutexLock lock(mutex_);
      EndIfUp(now, stop.stop_requested());
      has_begun = phase_ != Phase::kWarmUp;
      has_ended = phase_ == Phase::kOver;
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
    if (measured && now >= ended + options_.drain) given_up_.request_stop();
    if (now >= next || over) {
      HandOverSamples();
      if (!measured) TellProgress();
      next = now + kProgressEvery;
    }
  }
}

Result<Played> Player::Run(const std::stop_token& stop) {
  begin_ = clock_.Now();
  {
    MutexLock lock(mutex_);
    last_change_ = begin_;
  }
  if (const auto* rate = std::get_if<Rate>(&options_.scenario)) {
    TRY_STATUS(RunOpen(*rate));
  } else {
    RunClosed(std::get<Concurrency>(options_.scenario));
  }
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  Watch(stop);
  threads_.clear();
  HandOverSamples();
  MutexLock lock(mutex_);
  CHECK(measured_out_ == 0);
  const Instant end = options_.requests > 0 ? std::max(last_done_, from_) : to_;
  played_.measured_s = Seconds(end - from_);
  played_.warm_up_s = Seconds(from_ - begin_);
  played_.by_count = options_.requests > 0;
  return std::move(played_);
}

Status CheckOptions(const Requests& requests, const PlayOptions& options) {
  if (requests.pool.empty()) return Fail(ErrorCode::kInvalidArgument, "there is no request to send");
  if (!requests.expected.empty() && requests.expected.size() != requests.pool.size())
    return Fail(ErrorCode::kInvalidArgument, "there are not as many expected answers as requests");
  if (options.requests == 0 && options.length < 1ms)
    return Fail(ErrorCode::kInvalidArgument, "a run needs a length, or a number of requests");
  if (const auto* load = std::get_if<Concurrency>(&options.scenario); load && load->in_flight < 1)
    return Fail(ErrorCode::kInvalidArgument, "a concurrency is at least 1");
  return {};
}

}  // namespace

Result<Played> Play(infer::Service& service, const Requests& requests, const Clock& clock,
                    const PlayOptions& options, const PlayHooks& hooks, const std::stop_token& stop) {
  TRY_STATUS(CheckOptions(requests, options));
  return Player(service, requests, clock, options, hooks).Run(stop);
}

}  // namespace weir::load
