#include "load/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::load {
namespace {

// Whoever sends may be kept from saying when that was over until the answer has come.
Duration SendTime(const infer::Times& times, Instant sent, Instant done) {
  const Instant latest = times.first_byte.value_or(done);
  return times.written ? std::max(Duration{}, std::min(*times.written, latest) - sent) : Duration{};
}

constexpr size_t kMostSamplesKept = 1 << 20;  // between two calls of hooks.samples

}  // namespace

bool Player::Plan(Flight& flight, Instant planned) {
  const Instant now = clock_.Now();
  MutexLock lock(mutex_);
  const Ledger::Phase before = ledger_.phase();
  const auto ticket = ledger_.Plan(planned, now, now - flight.free_since.value_or(now));
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
  if (hooks_.drive) expectation_.Sent(flight.ticket.taken);
  service_.Submit(std::move(call));
}

void Player::Answered(Flight& flight, const Result<infer::Response>& result, const infer::Times& times) {
  const bool goes_on = !is_open_ && !is_sync_;  // once the last answer is counted the player may be gone
  // Over a wire an answer's end is its last byte's arrival, however late this thread was woken for it.
  const bool knows_arrival = result && times.first_byte && times.done;
  const Instant done = knows_arrival ? *times.done : clock_.Now();
  std::string fault;
  if (!result) fault = result.error().message;
  const Instant sent = std::max(flight.ticket.taken, times.sent.value_or(flight.ticket.taken));
  const Sample sample{.planned = flight.planned,
                      .sent = sent,
                      .first_byte = times.first_byte.value_or(done),
                      .done = done,
                      .send = SendTime(times, sent, done),
                      .request = flight.request,
                      .outcome = Check(flight, done, result, fault)};
  flight.rest = flight.backoff.After(sample.outcome);
  const bool goes_on_at_once = !is_open_ && flight.rest == Duration{};
  flight.free_since = goes_on_at_once ? std::optional(done) : std::nullopt;
  if (hooks_.drive) {
    // A schedule waits for no answer: where its arrival is known, it may be read late.
    const bool tells = sample.outcome == Outcome::kAnswered && !(is_open_ && knows_arrival);
    expectation_.Ended(flight.ticket.taken, done, tells);
  }
  {
    MutexLock lock(mutex_);
    ledger_.Ended(flight.ticket, sample, result ? result->durations : std::nullopt);
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

Outcome Player::Check(const Flight& flight, Instant done, const Result<infer::Response>& result,
                      std::string& fault) const {
  if (options_.timeout > Duration{} && done - flight.ticket.taken > options_.timeout)
    return Outcome::kTimedOut;
  if (!result) return OutcomeOf(result.error().code);
  if (!requests_.check) return Outcome::kAnswered;
  auto wrong = requests_.check(flight.request, *result);
  if (!wrong) return Outcome::kAnswered;
  fault = *std::move(wrong);
  return Outcome::kWrongAnswer;
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

// Once, until `until` or a little beyond the next answer. `awake`: of the end, if that is what it comes to.
void Player::Drive(Instant until, Duration awake) {
  const auto likely = expectation_.Next(clock_.Now());
  const bool expects = likely && *likely - Expectation::kBefore < until;
  if (expects) {
    const Instant from = std::min(until - awake, *likely - Expectation::kBefore);
    until = std::min(until, *likely + Expectation::kAfter);
    awake = until - from;
  }
  const Duration spun = hooks_.drive(until, awake);
  if (expects) expectation_.Waited(spun);
  spun_ += spun.count();
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

}  // namespace weir::load
