#include "load/ledger.h"

#include <algorithm>

namespace weir::load {
namespace {

constexpr Duration kGrace = 10ms;  // a request planned for the last moment may leave so much after the end

}  // namespace

Ledger::Ledger(const Options& options, Instant begin)
    : options_(options), begin_(begin), from_(begin), to_(begin), last_change_(begin), last_done_(begin) {}

bool Ledger::IsDue(Instant planned, Instant now) const {
  if (phase_ != Phase::kMeasuring) return phase_ == Phase::kWarmUp;
  if (options_.requests > 0) return measured_ < options_.requests;
  return planned < to_ && now < to_ + kGrace;
}

std::optional<Ledger::Ticket> Ledger::Plan(Instant planned, Instant now) {
  if (phase_ == Phase::kWarmUp && planned >= begin_ + options_.warm_up &&
      planned_ >= options_.warm_up_requests) {
    phase_ = Phase::kMeasuring;
    from_ = planned;
    to_ = options_.requests > 0 ? Instant::max() : planned + options_.length;
    last_change_ = std::max(last_change_, from_);
    warm_up_requests_ = planned_;
  }
  if (!IsDue(planned, now)) {
    End(std::min(to_, now));
    return std::nullopt;
  }
  CountInFlight(1, now);
  const Ticket ticket{.number = planned_++, .taken = now, .measured = phase_ == Phase::kMeasuring};
  if (ticket.measured) ++measured_;
  return ticket;
}

Duration Ledger::WithinMeasured(Instant from, Instant to) const {
  if (phase_ == Phase::kWarmUp) return {};
  return std::max(Duration{}, std::min(to, to_) - std::max(from, from_));
}

void Ledger::CountInFlight(int change, Instant now) {
  tally_.in_flight_seconds += in_flight_ * Seconds(WithinMeasured(last_change_, now));
  last_change_ = std::max(last_change_, now);
  in_flight_ += change;
}

void Ledger::Ended(const Ticket& ticket, const Sample& sample) {
  if (phase_ != Phase::kWarmUp && sample.done >= from_ && sample.done < to_) {
    tally_.left += 1;
    tally_.sojourn_seconds += Seconds(WithinMeasured(ticket.taken, sample.done));
    if (sample.outcome == Outcome::kAnswered) {
      tally_.answered_within += 1;
      tally_.done_series.Add(sample.done - from_, 1);
    }
  }
  CountInFlight(-1, sample.done);
  if (!ticket.measured) return;
  last_done_ = std::max(last_done_, sample.done);
  tally_.Add(sample, from_);
}

void Ledger::Unsent(Instant planned) {
  tally_.Add({.planned = planned,
              .sent = planned,
              .first_byte = planned,
              .done = planned,
              .request = 0,
              .outcome = Outcome::kUnsent},
             from_);
}

void Ledger::End(Instant now) {
  if (phase_ == Phase::kOver) return;
  if (phase_ == Phase::kWarmUp) {
    from_ = now;
    warm_up_requests_ = planned_;
  }
  to_ = phase_ == Phase::kWarmUp ? now : std::min(to_, now);
  phase_ = Phase::kOver;
}

}  // namespace weir::load
