#include "monitor/range.h"

#include <algorithm>
#include <utility>

namespace weir::monitor {

void Extremes::Add(double value) {
  max = count == 0 ? value : std::max(max, value);
  min = count == 0 ? value : std::min(min, value);
  sum += value;
  ++count;
}

void Extremes::AddIfAny(const std::optional<double>& value, double scale) {
  if (value) Add(*value * scale);
}

std::optional<Range> Extremes::ToRange() const {
  if (count == 0) return std::nullopt;
  return Range{sum / count, max, min};
}

Range Around(double mean, const Extremes& seen) {
  if (seen.count == 0) return {mean, mean, mean};
  return {mean, std::max(seen.max, mean), std::min(seen.min, mean)};
}

void Counter::Add(Instant at, double value) {
  if (last_) {
    const double gain = value < last_->value ? value : value - last_->value;
    gained_ += gain;
    open_gain_ += gain;
    watched_ += at - last_->at;
    open_ += at - last_->at;
    if (open_ > Duration{} && open_ >= shortest_) {
      const Duration time = std::exchange(open_, {});
      rates_.Add(std::exchange(open_gain_, 0) / Seconds(time));
    }
  }
  last_ = Reading{at, value};
}

std::optional<double> Counter::gained() const {
  if (watched_ <= Duration{}) return std::nullopt;
  return gained_;
}

std::optional<Range> Counter::PerSecond() const {
  if (watched_ <= Duration{}) return std::nullopt;
  return Around(gained_ / Seconds(watched_), rates_);
}

}  // namespace weir::monitor
