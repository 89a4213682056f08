#include "load/generator/ledger.h"

#include <algorithm>

namespace weir::load {
namespace {

constexpr Duration kGrace = 10ms;  // a request planned for the last moment may leave so much after the end

// Returns false for outcomes that the server may count at any later time, or never.
bool IsTheServersAnswer(Outcome outcome) {
  return outcome != Outcome::kTimedOut && outcome != Outcome::kNoServer && outcome != Outcome::kUnsent;
}

}  // namespace

Ledger::Ledger(const Options& options, Instant begin)
    : options_(options), begin_(begin), from_(begin), to_(begin), last_change_(begin), last_done_(begin) {
  if (options.windows) tally_.windows.emplace(options.length);
}

bool Ledger::IsDue(Instant planned, Instant now) const {
  if (phase_ != Phase::kMeasuring) return phase_ == Phase::kWarmUp;
  if (by_count()) return measured_ < options_.requests;
  return planned < to_ && now < to_ + kGrace;
}

std::optional<Ledger::Ticket> Ledger::Plan(Instant planned, Instant now, Duration empty) {
  if (phase_ == Phase::kWarmUp && planned >= begin_ + options_.warm_up &&
      planned_ >= options_.warm_up_requests) {
    phase_ = Phase::kMeasuring;
    from_ = planned;
    to_ = by_count() ? Instant::max() : planned + options_.length;
    last_change_ = std::max(last_change_, from_);
    warm_up_requests_ = planned_;
  }
  if (!IsDue(planned, now)) {
    End(by_count() ? now : std::min(to_, now));
    return std::nullopt;
  }
  CountInFlight(1, now);
  const Ticket ticket{.number = planned_++, .taken = now, .measured = phase_ == Phase::kMeasuring};
  if (ticket.measured) ++measured_, ++out_;
  if (ticket.measured && empty > kLate) tally_.empty_seconds += Seconds(empty);
  if (by_count() && measured_ == options_.requests) EndByCount(now);
  return ticket;
}

void Ledger::EndByCount(Instant now) {
  if (to_ == Instant::max() && tally_.left >= in_flight_) to_ = std::max(from_, now);
}

void Ledger::EndWithLastAnswer() {
  if (to_ == Instant::max()) to_ = std::max(from_, last_done_);
}

void Ledger::CountInFlight(int change, Instant now) {
  last_change_ = std::max(last_change_, now);
  in_flight_ += change;
}

void Ledger::Ended(const Ticket& ticket, const Sample& sample,
                   const std::optional<infer::ServerDurations>& server) {
  if (phase_ != Phase::kWarmUp && sample.done >= from_) {
    if (sample.done < to_) {
      tally_.left += 1;
      if (sample.outcome == Outcome::kAnswered) {
        tally_.answered_within += 1;
        tally_.done_series.Add(sample.done - from_, 1);
      }
    }
  }
  CountInFlight(-1, sample.done);
  if (IsTheServersAnswer(sample.outcome)) ++answered_;
  if (!ticket.measured) return;
  --out_;
  last_done_ = std::max(last_done_, sample.done);
  tally_.Add(sample, from_, server);
  if (phase_ == Phase::kOver && by_count() && out_ == 0) EndWithLastAnswer();
}

bool Ledger::Unsent(Instant planned) {
  if (by_count() || planned < from_ || planned >= to_) return false;
  tally_.Add({.planned = planned,
              .sent = planned,
              .first_byte = planned,
              .done = planned,
              .request = 0,
              .outcome = Outcome::kUnsent},
             from_);
  return true;
}

void Ledger::End(Instant now) {
  if (phase_ == Phase::kOver) return;
  if (phase_ == Phase::kWarmUp) {
    from_ = to_ = now;
    warm_up_requests_ = planned_;
  } else if (!by_count()) {
    to_ = std::min(to_, now);
  } else {
    if (measured_ < options_.requests) EndByCount(now);
    if (out_ == 0) EndWithLastAnswer();
  }
  phase_ = Phase::kOver;
}

}  // namespace weir::load
