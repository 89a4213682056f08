// A quantity's mean and its extremes. Pure; nothing here knows where the readings come
// from.
#pragma once

#include <optional>

#include "base/clock.h"
#include "results/monitor_result.h"

namespace weir::monitor {

using results::Range;

// A level, as samples saw it.
struct Extremes {
  double max = 0, min = 0;
  int count = 0;
  double sum = 0;

  void Add(double value);
  void AddIfAny(const std::optional<double>& value, double scale = 1);
  std::optional<Range> ToRange() const;  // absent without a sample
};

// Something that is counted upwards elsewhere, read now and then. A count that has fallen began anew, from 0.
class Counter {
 public:
  // Two readings closer together than `shortest` give no rate: the time joins the next one. A count
  // that is brought up to date in steps would else show peaks that never were.
  explicit Counter(Duration shortest) : shortest_(shortest) {}

  void Add(Instant at, double value);      // `at` never falls
  std::optional<double> gained() const;    // between the first reading and the last; absent before the second
  std::optional<Range> PerSecond() const;  // absent where no time has passed

 private:
  struct Reading {
    Instant at;
    double value = 0;
  };
  Duration shortest_;
  std::optional<Reading> last_;
  Duration watched_{}, open_{};  // `open_`: the part of it that is not in the rates
  double gained_ = 0, open_gain_ = 0;
  Extremes rates_;
};

// `mean` with the extremes of samples around it; they are widened to hold it.
Range Around(double mean, const Extremes& seen);

}  // namespace weir::monitor
