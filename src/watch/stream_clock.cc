#include "watch/stream_clock.h"

#include <algorithm>
#include <cmath>

#include "stats/line.h"

namespace weir::watch {
namespace {

constexpr Duration kStep = 1ms;  // wall time is slewed by far less between two frames
constexpr size_t kMostPairs = 3600;
constexpr int64_t kRestart = 1000;  // a counter that falls by more is a sender that began again
constexpr Duration kLeastClockStep = 20ms;

}  // namespace

ClockReading ReadClocks(const Clock& clock) {
  constexpr int kTries = 5;
  constexpr Duration kNarrow = 20us;
  ClockReading best;
  Duration least = Duration::max();
  for (int i = 0; i < kTries && least > kNarrow; ++i) {
    const Instant before = clock.Now();
    const Duration wall = WallTime();
    const Duration between = clock.Now() - before;
    if (between >= least) continue;
    least = between;
    best = {before + between / 2, wall};
  }
  return best;
}

void ClockOffset::Note(Instant steady, Duration wall) {
  const Duration offset = wall - steady.time_since_epoch();
  if (!last_) {
    first_ = offset;
  } else if (const Duration jump = std::chrono::abs(offset - offset_); jump > kStep) {
    ++steps_;
    largest_ = std::max(largest_, jump);
  }
  offset_ = offset;
  if ((!last_ || steady - kept_ >= 1s) && seconds_.size() < kMostPairs) {
    kept_ = steady;
    seconds_.push_back(Seconds(steady.time_since_epoch()));
    offsets_.push_back(Microseconds(offset - first_));
  }
  last_ = steady;
}

ClockOffset::Report ClockOffset::report() const {
  Report report{.offset_change_ms = Milliseconds(offset_ - first_),
                .drift_ppm = {},
                .steps = steps_,
                .largest_step_ms = Milliseconds(largest_)};
  if (seconds_.size() < 4) return report;
  if (const auto line = stats::FitLine(seconds_, offsets_)) report.drift_ppm = line->slope;
  return report;
}

CounterCheck::Found CounterCheck::Note(const Stamp& stamp, int64_t skipped) {
  Found found;
  const int64_t now = stamp.counter;
  const Duration captured = stamp.captured;
  if (!last_) {
    last_ = now;
    last_captured_ = captured;
    last_arrived_ = stamp.arrived;
    return found;
  }
  const int64_t gap = now - *last_;
  if (gap == 0) {
    found.order = Order::kRepeated;
    return found;
  }
  if (gap < 0 && (gap < -kRestart || (captured > last_captured_ && !missing_.contains(now)))) {
    found.restarted = true;
    missing_.clear();
    period_ns_.reset();
    last_ = now;
    last_captured_ = captured;
    last_arrived_ = stamp.arrived;
    return found;
  }
  if (gap < 0) {
    found.recovered = missing_.erase(now) > 0;
    found.order = found.recovered ? Order::kOutOfOrder : Order::kRepeated;
    return found;
  }
  found.lost = std::max<int64_t>(0, gap - 1 - skipped);
  if (skipped == 0) {
    for (int64_t each = *last_ + 1; each < now && missing_.size() < kMostMissing; ++each)
      missing_.insert(each);
  }
  const auto elapsed = static_cast<double>((captured - last_captured_).count());
  if (period_ns_) {
    const double error = elapsed - *period_ns_ * static_cast<double>(gap);
    const double limit = std::max<double>(static_cast<double>(kLeastClockStep.count()), 0.5 * *period_ns_);
    const auto apart =
        static_cast<double>((captured - last_captured_ - (stamp.arrived - last_arrived_)).count());
    if (std::abs(error) > limit && std::abs(apart) > limit)
      found.clock_step = Duration(static_cast<Duration::rep>(error));
  }
  if (!found.clock_step && elapsed > 0) {
    const double period = elapsed / static_cast<double>(gap);
    period_ns_ = period_ns_ ? *period_ns_ + (period - *period_ns_) / 4 : period;
  }
  last_ = now;
  last_captured_ = captured;
  last_arrived_ = stamp.arrived;
  while (!missing_.empty() && *missing_.begin() < now - static_cast<int64_t>(kMostMissing))
    missing_.erase(missing_.begin());
  return found;
}

}  // namespace weir::watch
