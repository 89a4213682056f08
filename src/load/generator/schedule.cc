#include "load/generator/schedule.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

namespace weir::load {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

// Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; scale 1.
double Gamma(double shape, Random& random) {
  if (shape < 1) {  // their section 6
    const double boost = std::pow(1 - random.Uniform(), 1 / shape);
    return Gamma(shape + 1, random) * boost;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.Normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - random.Uniform();
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

Result<TraceArrivals> ParseTrace(std::string_view text) {
  TraceArrivals trace;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    double us = 0;
    const auto [stop, fault] = std::from_chars(line.data(), line.data() + line.size(), us);
    if (fault != std::errc() || stop != line.data() + line.size() || !(us >= 0 && us <= 3.6e9)) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("line {} of the intervals is not a number of microseconds, 0 to an hour", number));
    }
    trace.gaps.push_back(FromSeconds(us / 1e6));
  }
  if (trace.gaps.empty())
    return Fail(ErrorCode::kInvalidArgument, "the intervals are empty: give one gap a line, in microseconds");
  if (RateOf(trace) == 0)
    return Fail(ErrorCode::kInvalidArgument, "the intervals are all 0: they make no rate");
  return trace;
}

double RateOf(const TraceArrivals& trace) {
  const Duration sum = std::accumulate(trace.gaps.begin(), trace.gaps.end(), Duration{});
  return sum > Duration{} ? static_cast<double>(trace.gaps.size()) / Seconds(sum) : 0;
}

Result<Schedule> Schedule::Create(RxTimestamps arrivals, double rate, Seed seed, ScheduleShare share) {
  if (const auto* trace = std::get_if<TraceArrivals>(&arrivals)) {
    rate = RateOf(*trace);
    if (rate == 0) return Fail(ErrorCode::kInvalidArgument, "a trace without time makes no schedule");
  }
  if (!(rate > 0 && rate <= 1e8))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a rate of {} requests a second: it must be above 0 and at most 1e8", rate));
  if (const auto* gamma = std::get_if<GammaArrivals>(&arrivals)) {
    if (!(gamma->variation >= 0.01 && gamma->variation <= 100))
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("a variation of {} between arrivals: it must be from 0.01 to 100", gamma->variation));
  }
  if (share.every < 1 || share.first < 0 || share.first >= share.every)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("share {} of {} of a schedule: shares begin at 0", share.first, share.every));
  return Schedule(std::move(arrivals), rate, seed, share);
}

Schedule::Schedule(RxTimestamps arrivals, double rate, Seed seed, ScheduleShare share)
    : arrivals_(std::move(arrivals)),
      rate_(rate),
      share_(share),
      random_(seed.Stream("arrivals").MakeRandom()) {
  if (const auto* profile = std::get_if<ProfileArrivals>(&arrivals_)) profile_.emplace(profile->trace);
}

Duration Schedule::Next() {
  while (given_ % share_.every != share_.first) NextOfAll();
  return NextOfAll();
}

Duration Schedule::NextOfAll() {
  const int64_t number = given_++;
  if (const auto* trace = std::get_if<TraceArrivals>(&arrivals_)) {
    traced_ += trace->gaps[static_cast<size_t>(number) % trace->gaps.size()];
    return traced_;
  }
  if (profile_) {  // a Poisson process of rate 1, with its time stretched as the trace says
    wanted_ += -std::log(1 - random_.Uniform());
    return FromSeconds(profile_->SecondsAt(wanted_));
  }
  if (std::holds_alternative<ConstantArrivals>(arrivals_))
    return Duration(std::llround(static_cast<long double>(number) * 1e9L / static_cast<long double>(rate_)));
  fraction_ += Gap();
  const double whole = std::floor(fraction_);
  seconds_ += whole;
  fraction_ -= whole;
  return Duration(static_cast<int64_t>(seconds_) * 1'000'000'000 + std::llround(fraction_ * 1e9));
}

double Schedule::Gap() {
  return std::visit(Overloaded{[&](const GammaArrivals& gamma) {
                                 const double shape = 1 / (gamma.variation * gamma.variation);
                                 return Gamma(shape, random_) / shape / rate_;
                               },
                               [&](const auto&) { return -std::log(1 - random_.Uniform()) / rate_; }},
                    arrivals_);
}

}  // namespace weir::load
