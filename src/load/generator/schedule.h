// When requests are wanted: moments fixed before the run from a seed, and never moved because the system is
// slow. Pure: no thread, no clock.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "load/generator/rate_trace.h"

namespace weir::load {

struct ConstantArrivals {};  // one every 1 / rate
struct PoissonArrivals {};   // exponential gaps: many independent callers
struct GammaArrivals {
  double variation =
      2;  // the gaps' standard deviation over their mean: below 1 more even than Poisson's, above burstier
};
// Gaps between arrivals, taken in turn again and again; the rate is what they make.
struct TraceArrivals {
  std::vector<Duration> gaps;
};
// Poisson arrivals at a rate that changes with time.
struct ProfileArrivals {
  RateTrace trace;
};
using RxTimestamps =
    std::variant<ConstantArrivals, PoissonArrivals, GammaArrivals, TraceArrivals, ProfileArrivals>;

// One gap a line, in microseconds (perf_analyzer's --request-intervals). kInvalidArgument names the line.
Result<TraceArrivals> ParseTrace(std::string_view text);
// Requests a second of a trace.
double RateOf(const TraceArrivals& trace);

// One host's share of a schedule: the requests whose number modulo `every` is `first`. So hosts with one seed
// send together what one host would.
struct ScheduleShare {
  int every = 1;
  int first = 0;  // below `every`
  bool operator==(const ScheduleShare&) const = default;
};

// A value that is used up. One thread at a time.
class Schedule {
 public:
  // `rate`: requests a second of all shares, above 0; traces have their own. kInvalidArgument names what
  // is wrong.
  static Result<Schedule> Create(RxTimestamps arrivals, double rate, Seed seed, ScheduleShare share = {});

  // The moment of the next request, counted from the start; never before the one given last. A constant
  // schedule's n-th is n / rate to the nanosecond, whatever n.
  Duration Next();

 private:
  Schedule(RxTimestamps arrivals, double rate, Seed seed, ScheduleShare share);
  Duration NextOfAll();
  double Gap();  // seconds

  RxTimestamps arrivals_;
  double rate_;
  ScheduleShare share_;
  Random random_;
  int64_t given_ = 0;
  double seconds_ = 0;   // the sum of the whole seconds of the gaps
  double fraction_ = 0;  // and of the rest, so that hours of small gaps lose nothing
  Duration traced_{};
  std::optional<TraceInverse> profile_;
  double wanted_ = 0;  // requests of the profile so far, in its own measure
};

}  // namespace weir::load
