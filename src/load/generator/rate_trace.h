// A rate that changes with time, as a file tells it, and the figures of a run over it by equal parts of its
// time. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "load/generator/sample.h"
#include "stats/histogram.h"

namespace weir::load {

// Straight lines between points; beyond the last one its rate stays.
struct RateTrace {
  struct Point {
    double at_s = 0, per_second = 0;
    bool operator==(const Point&) const = default;
  };
  std::vector<Point> points;  // the first at 0, each later than the one before

  double length_s() const { return points.empty() ? 0 : points.back().at_s; }
  double mean_per_second() const;
  double peak_per_second() const;
};

// Reads lines "SECONDS,REQUESTS_PER_SECOND" after one line of names; the first is at 0 seconds. Time is
// divided by `speed` and rates are multiplied by `scale`. kInvalidArgument names the line.
Result<RateTrace> ParseRateTrace(std::string_view text, double speed, double scale);

// The moments at which the number of requests that a trace wants reaches given values. One thread at a time.
class TraceInverse {
 public:
  explicit TraceInverse(RateTrace trace) : trace_(std::move(trace)) {}
  // Returns the seconds until the trace has wanted `requests`; a moment far beyond its end if it never does.
  // REQUIRES: not fewer than the time before.
  double SecondsAt(double requests);

 private:
  RateTrace trace_;
  size_t segment_ = 0;
  double before_ = 0;  // requests wanted until the segment begins
};

// The outcomes of the requests in each of equal parts of a run.
class TraceWindows {
 public:
  static constexpr size_t kCount = 24;
  struct Window {
    int64_t answered = 0, failed = 0, unsent = 0;
    stats::Histogram response;
    int64_t planned() const { return answered + failed + unsent; }
  };
  explicit TraceWindows(Duration length) : length_(length), windows_(kCount) {}
  void Add(const Sample& sample, Instant from);
  void Merge(const TraceWindows& more);

  double width_s() const { return Seconds(length_) / kCount; }
  const std::vector<Window>& windows() const { return windows_; }

 private:
  Duration length_;
  std::vector<Window> windows_;
};

}  // namespace weir::load
