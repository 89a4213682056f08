#include "load/generator/generator.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "load/generator/player.h"
#include "load/generator/thread_use.h"

namespace weir::load {
namespace {

constexpr Duration kProgressEvery = 250ms;
constexpr Duration kAfterStop = 5s;  // whoever has asked for the end is not kept waiting for all answers

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
    StartOpen(TRY(Schedule::Create(rate->arrivals, rate->per_second * rate->share.every, options_.seed,
                                   rate->share)),
              rate->most_in_flight);
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
  const RequestCounter so_far = [this] {
    MutexLock lock(mutex_);
    return ledger_.so_far();
  };
  Instant ended;
  told_at_ = clock_.Now();
  Instant next = told_at_ + kProgressEvery;
  while (!over) {
    over = Wait(next);
    const Instant now = clock_.Now();
    bool has_begun = false, has_ended = false;
    {
      MutexLock lock(mutex_);
      EndIfUp(now, stop.stop_requested());
      has_begun = ledger_.phase() != Ledger::Phase::kWarmUp;
      has_ended = ledger_.finished();
    }
    if (has_begun && !std::exchange(measuring, true)) {
      cpu_before = ProcessCpuTime();
      spun_before = spun_;
      use = ReadThreadUse();
      if (hooks_.measuring) hooks_.measuring(so_far);
    }
    if (has_ended && !std::exchange(measured, true)) {
      ended = now;
      const Duration cpu = ProcessCpuTime() - cpu_before;
      const Duration spun(spun_ - spun_before);
      const Busiest busiest = BusiestThread(use, ReadThreadUse(), {"client", "load-"}, spun);
      if (hooks_.measured) hooks_.measured(so_far);
      MutexLock lock(mutex_);
      played_.spin_s = Seconds(spun);
      played_.cpu_s = std::max(0.0, Seconds(cpu - spun));
      played_.busiest_thread = busiest.share;
      played_.busiest_thread_name = busiest.name;
    }
    const Duration patience = stop.stop_requested() ? std::min(options_.drain, kAfterStop) : options_.drain;
    if (measured && now >= ended + patience) given_up_ = true;
    const bool may_give_up = hooks_.drive ? undriven_.load() : measured;
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

RunOutcome Player::Sum() {
  MutexLock lock(mutex_);
  played_.tally = ledger_.tally();
  played_.requests = ledger_.so_far();
  played_.by_count = options_.requests > 0;
  played_.measured_s = Seconds(ledger_.to() - ledger_.from());
  if (!is_open_ && played_.measured_s > 0) {
    const double places = std::get<Concurrency>(options_.scenario).in_flight;
    played_.empty_share = ledger_.tally().empty_seconds / (places * played_.measured_s);
  }
  played_.warm_up_s = Seconds(ledger_.from() - begin_);
  played_.warm_up_requests = ledger_.warm_up_requests();
  return std::move(played_);
}

Result<RunOutcome> Play(infer::Service& service, const Requests& requests, const Clock& clock,
                        const PlayOptions& options, const PlayHooks& hooks, const std::stop_token& stop) {
  TRY_STATUS(CheckOptions(requests, options, hooks));
  Player player(service, requests, clock, options, hooks);
  TRY_STATUS(player.Start());
  player.Watch(stop);
  return player.Sum();
}

}  // namespace weir::load
