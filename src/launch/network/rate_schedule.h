// A link whose rate changes: which rate holds when. Pure; VariableRate of variable_rate.h carries it out.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"

namespace weir::launch {

// Rates and how long each holds, made beforehand from a seed, from the beginning on and then again from the
// beginning. The mean over every pair of steps that follow one another (0 and 1, 2 and 3, ...), and so over
// the whole, is the mean asked for: one of them lies as much above it, weighted with time, as the other lies
// below. A value; const and thread-safe once made.
class RateSchedule {
 public:
  struct Options {
    double mean_gbit_per_s = 5;
    double lowest = 0.25, highest = 1.75;     // of the mean: 0 < lowest <= 1 <= highest
    Duration shortest = 500ms, longest = 2s;  // how long a rate holds
    // After this it begins again. Where steps of these lengths cannot fill it in pairs it is made longer.
    // Give the time that is measured, and the mean over that time is the mean asked for.
    Duration length = 60s;
    Seed seed{1};
  };
  struct Step {
    Duration begin{};  // since the beginning
    double gbit_per_s = 0;
  };
  // kInvalidArgument names the option that cannot be.
  static Result<RateSchedule> Create(const Options& options);

  // `since` is the time since the beginning; before it, the first rate holds.
  double RateAt(Duration since) const;
  Duration NextChange(Duration since) const;  // the first after `since`
  // The time average, Gbit/s, of the rates from `from` to `to`: what could have passed. REQUIRES: from < to.
  double MeanBetween(Duration from, Duration to) const;

  const std::vector<Step>& steps() const { return steps_; }
  Duration length() const { return length_; }
  double mean_gbit_per_s() const { return mean_; }

 private:
  RateSchedule() = default;
  size_t IndexAt(Duration since) const;  // of the step that holds then
  double GigabitsUntil(Duration since) const;

  double mean_ = 0;
  Duration length_{};
  std::vector<Step> steps_;       // at least two, the first at 0
  std::vector<double> gigabits_;  // that could have passed before each begins
};

}  // namespace weir::launch
