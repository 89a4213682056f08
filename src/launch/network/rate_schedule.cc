#include "launch/network/rate_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weir::launch {
namespace {

constexpr int64_t kMostSteps = 1'000'000;

std::unexpected<Error> Wrong(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, "a variable rate: " + std::move(message));
}

Status Check(const RateSchedule::Options& o) {
  if (!(o.mean_gbit_per_s > 0 && std::isfinite(o.mean_gbit_per_s)))
    return Wrong(fmt::format("its mean of {} Gbit/s is not above 0", o.mean_gbit_per_s));
  if (!(o.lowest > 0 && o.lowest <= 1))
    return Wrong(
        fmt::format("its lowest rate is {} of the mean; above 0 and at most 1 can be had", o.lowest));
  if (!(o.highest >= 1 && std::isfinite(o.highest)))
    return Wrong(fmt::format("its highest rate is {} of the mean; at least 1 is wanted", o.highest));
  if (o.shortest < 1ms || o.longest < o.shortest)
    return Wrong(fmt::format("steps of {} to {} s; at least 0.001 s, and the longer second, is wanted",
                             Seconds(o.shortest), Seconds(o.longest)));
  if (o.length <= Duration::zero() || o.length / o.shortest > kMostSteps)
    return Wrong(fmt::format("a length of {} s; above 0 and at most {} times the shortest step can be had",
                             Seconds(o.length), kMostSteps));
  return {};
}

// An even number of steps, as near as may be to the length over the middle of a step, with which steps from
// shortest to longest can fill it.
int64_t StepCount(const RateSchedule::Options& o) {
  const auto even = [](double pairs) { return 2 * std::max<int64_t>(1, static_cast<int64_t>(pairs)); };
  const double length = Seconds(o.length), shortest = Seconds(o.shortest), longest = Seconds(o.longest);
  const int64_t fewest = even(std::ceil(length / longest / 2));
  const int64_t most = std::max(fewest, even(std::floor(length / shortest / 2)));
  return std::clamp(even(std::round(length / (shortest + longest))), fewest, most);
}

// Where the steps begin and, last, where they end: lengths drawn freely, then all brought as much nearer to
// the longest, or the shortest, as makes them fill `length`.
std::vector<Duration> DrawBounds(const RateSchedule::Options& o, int64_t count, Duration length) {
  Random random = o.seed.Stream("link-lengths").MakeRandom();
  const auto shortest = static_cast<double>(o.shortest.count()),
             longest = static_cast<double>(o.longest.count());
  std::vector<double> lengths(static_cast<size_t>(count));
  for (double& one : lengths) one = random.Uniform(shortest, longest);
  const double drawn = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const double missing = static_cast<double>(length.count()) - drawn;
  const double bound = missing > 0 ? longest : shortest;
  const double room = static_cast<double>(count) * bound - drawn;
  std::vector<Duration> bounds{Duration::zero()};
  double at = 0;
  for (const double one : lengths) {
    at += room == 0 ? one : one + (bound - one) * missing / room;
    bounds.emplace_back(std::llround(at));
  }
  bounds.back() = length;
  return bounds;
}

// Both rates of a pair, as factors of the mean: the time above it times the excess equals the time below it
// times the want.
struct Factors {
  double first = 1, second = 1;
};
Factors DrawFactors(const RateSchedule::Options& o, Duration first, Duration second, Random& random) {
  const bool up_first = random.Uniform() < 0.5;
  const double above = Seconds(up_first ? first : second), below = Seconds(up_first ? second : first);
  const double most = std::min((o.highest - 1) * above, (1 - o.lowest) * below);
  const double moved = random.Uniform(0, most);
  const double up = 1 + moved / above, down = 1 - moved / below;
  return up_first ? Factors{up, down} : Factors{down, up};
}

}  // namespace

Result<RateSchedule> RateSchedule::Create(const Options& options) {
  TRY_STATUS(Check(options));
  RateSchedule schedule;
  const int64_t count = StepCount(options);
  schedule.mean_ = options.mean_gbit_per_s;
  schedule.length_ = std::max(options.length, count * options.shortest);
  const std::vector<Duration> bounds = DrawBounds(options, count, schedule.length_);
  Random random = options.seed.Stream("link-rates").MakeRandom();
  double gigabits = 0;
  const auto add = [&](size_t step, double factor) {
    const double rate = factor * options.mean_gbit_per_s;
    schedule.steps_.push_back({.begin = bounds[step], .gbit_per_s = rate});
    schedule.gigabits_.push_back(gigabits);
    gigabits += rate * Seconds(bounds[step + 1] - bounds[step]);
  };
  for (size_t i = 0; i < static_cast<size_t>(count); i += 2) {
    const Factors factors =
        DrawFactors(options, bounds[i + 1] - bounds[i], bounds[i + 2] - bounds[i + 1], random);
    add(i, factors.first);
    add(i + 1, factors.second);
  }
  return schedule;
}

size_t RateSchedule::IndexAt(Duration since) const {
  const Duration within = std::max(since, Duration::zero()) % length_;
  const auto after = std::ranges::upper_bound(steps_, within, {}, &Step::begin);
  return static_cast<size_t>(after - steps_.begin()) - 1;
}

double RateSchedule::RateAt(Duration since) const { return steps_[IndexAt(since)].gbit_per_s; }

Duration RateSchedule::NextChange(Duration since) const {
  if (since < Duration::zero()) return steps_[1].begin;
  const Duration round = since - since % length_;
  const size_t next = IndexAt(since) + 1;
  return round + (next < steps_.size() ? steps_[next].begin : length_);
}

double RateSchedule::GigabitsUntil(Duration since) const {
  if (since <= Duration::zero()) return steps_[0].gbit_per_s * Seconds(since);
  const auto rounds = static_cast<double>(since / length_);
  const size_t index = IndexAt(since);
  return rounds * mean_ * Seconds(length_) + gigabits_[index] +
         steps_[index].gbit_per_s * Seconds(since % length_ - steps_[index].begin);
}

double RateSchedule::MeanBetween(Duration from, Duration to) const {
  CHECK(from < to);
  return (GigabitsUntil(to) - GigabitsUntil(from)) / Seconds(to - from);
}

}  // namespace weir::launch
