#include "load/generator/player.h"

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

bool Player::Plan(Slot& slot, Instant planned) {
  const Instant now = clock_.Now();
  MutexLock lock(mutex_);
  const Ledger::Phase before = ledger_.phase();
  const auto ticket = ledger_.Plan(planned, now, now - slot.free_since.value_or(now));
  if (ledger_.phase() != before) {
    changed_.NotifyAll();
    freed_.NotifyAll();
  }
  if (!ticket) return false;
  slot.ticket = *ticket;
  slot.planned = planned;
  slot.request = static_cast<uint32_t>(ticket->number % std::ssize(requests_.pool));
  slot.answered = false;
  return true;
}

void Player::Submit(Slot& slot) {
  infer::Call call;
  call.request = requests_.pool[slot.request];
  if (options_.timeout > Duration{}) call.request.deadline = slot.ticket.taken + options_.timeout;
  call.times.planned = slot.planned;
  call.completion =
      infer::Completion([this, &slot](const Result<infer::Response>& result, const infer::Times& times) {
        Answered(slot, result, times);
      });
  if (hooks_.drive) expectation_.Sent(slot.ticket.taken);
  service_.Submit(std::move(call));
}

void Player::Answered(Slot& slot, const Result<infer::Response>& result, const infer::Times& times) {
  const bool goes_on = !is_open_ && !is_sync_;  // once the last answer is counted the player may be gone
  // Over a wire an answer's end is its last byte's arrival, however late this thread was woken for it.
  const bool knows_arrival = result && times.first_byte && times.done;
  const Instant done = knows_arrival ? *times.done : clock_.Now();
  std::string fault;
  if (!result) fault = result.error().message;
  const Instant sent = std::max(slot.ticket.taken, times.sent.value_or(slot.ticket.taken));
  const Sample sample{.planned = slot.planned,
                      .sent = sent,
                      .first_byte = times.first_byte.value_or(done),
                      .done = done,
                      .send = SendTime(times, sent, done),
                      .request = slot.request,
                      .outcome = Check(slot, done, result, fault)};
  slot.rest = slot.backoff.After(sample.outcome);
  const bool goes_on_at_once = !is_open_ && slot.rest == Duration{};
  slot.free_since = goes_on_at_once ? std::optional(done) : std::nullopt;
  if (hooks_.drive) {
    // A schedule waits for no answer: where its arrival is known, it may be read late.
    const bool tells = sample.outcome == Outcome::kAnswered && !(is_open_ && knows_arrival);
    expectation_.Ended(slot.ticket.taken, done, tells);
  }
  {
    MutexLock lock(mutex_);
    ledger_.Ended(slot.ticket, sample, result ? result->durations : std::nullopt);
    Keep(sample, slot.ticket.measured, fault);
    if (is_open_) {
      free_.push_back(&slot);
      if (!hooks_.drive) freed_.NotifyOne();
    }
    if (is_sync_) {
      slot.answered = true;
      slot.changed.NotifyOne();
    }
    if (ledger_.in_flight() == 0 && ledger_.phase() == Ledger::Phase::kOver) changed_.NotifyAll();
  }
  if (goes_on && slot.half_done.exchange(true)) KeepSlots({&slot});
}

Outcome Player::Check(const Slot& slot, Instant done, const Result<infer::Response>& result,
                      std::string& fault) const {
  if (options_.timeout > Duration{} && done - slot.ticket.taken > options_.timeout) return Outcome::kTimedOut;
  if (!result) return OutcomeOf(result.error().code);
  if (!requests_.check) return Outcome::kAnswered;
  auto wrong = requests_.check(slot.request, *result);
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
  const bool expects = likely && *likely - CompletionPredictor::kBefore < until;
  if (expects) {
    const Instant from = std::min(until - awake, *likely - CompletionPredictor::kBefore);
    until = std::min(until, *likely + CompletionPredictor::kAfter);
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
