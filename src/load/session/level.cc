#include "load/session/level.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace weir::load {
namespace {

constexpr size_t kMostLevels = 1000;
constexpr double kMostValue = 1e8;
constexpr double kUsualSeconds = 10;
constexpr int kUsualWindows = 3;  // perf_analyzer joins the last three

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::vector<std::string> SplitAt(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) c == at ? parts.emplace_back() : parts.back() += c;
  return parts;
}

Result<double> ParseNumber(const std::string& text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return Invalid(fmt::format("\"{}\" is not a number", text));
  return value;
}

}  // namespace

Result<std::vector<double>> ParseRange(const std::string& text) {
  std::vector<double> values;
  if (text.contains(',')) {
    for (const std::string& part : SplitAt(text, ',')) values.push_back(TRY(ParseNumber(part)));
  } else {
    std::vector<std::string> parts = SplitAt(text, ':');
    if (parts.size() > 3)
      return Invalid(
          fmt::format("\"{}\" is not a range: START:END:STEP, START:END:2x or a list A,B,C", text));
    const bool doubles = parts.size() == 3 && parts[2] == "2x";
    const double start = TRY(ParseNumber(parts[0]));
    const double end = parts.size() > 1 ? TRY(ParseNumber(parts[1])) : start;
    const double step = doubles || parts.size() < 3 ? 1 : TRY(ParseNumber(parts[2]));
    if (!(start > 0) || end < start || !(step > 0))
      return Invalid(fmt::format("\"{}\" is not a range: it starts above 0, and goes up", text));
    if (end > kMostValue) return Invalid(fmt::format("\"{}\": a level is at most {:g}", text, kMostValue));
    if (!doubles && (end - start) / step >= kMostLevels)
      return Invalid(fmt::format("\"{}\" is more than {} levels", text, kMostLevels));
    for (double value = start; value <= end * (1 + 1e-9); value = doubles ? 2 * value : value + step)
      values.push_back(value);
  }
  for (const double value : values) {
    if (!(value > 0 && value <= kMostValue))
      return Invalid(fmt::format("\"{}\": every level is above 0, and at most {:g}", text, kMostValue));
  }
  return values;
}

Result<std::map<std::string, infer::Shape>> ParseShapes(const std::vector<std::string>& texts) {
  std::map<std::string, infer::Shape> shapes;
  for (const std::string& text : texts) {
    const size_t colon = text.rfind(':');
    const std::string name = text.substr(0, colon);
    if (colon == std::string::npos || name.empty())
      return Invalid(fmt::format("--shape {}: it is NAME:3,224,224", text));
    infer::Shape shape;
    for (const std::string& part : SplitAt(text.substr(colon + 1), ',')) {
      const double value = TRY_CONTEXT(ParseNumber(part), fmt::format("--shape {}", text));
      if (value < 0 || value > 1e12 || value != std::floor(value))
        return Invalid(fmt::format("--shape {}: {} is not a dimension", text, part));
      shape.push_back(static_cast<int64_t>(value));
    }
    if (!shapes.emplace(name, std::move(shape)).second)
      return Invalid(fmt::format("--shape names {} twice", name));
  }
  return shapes;
}

namespace {

Result<RxTimestamps> ArrivalsOf(const LoadOptions& options) {
  if (!options.intervals.empty()) {
    const std::string text = TRY(ReadTextFile(options.intervals));
    return TRY_CONTEXT(ParseTrace(text), options.intervals);
  }
  switch (options.distribution) {
    case infer::Distribution::kPoisson:
      return PoissonArrivals{};
    case infer::Distribution::kGamma:
      return GammaArrivals{options.variation};
    case infer::Distribution::kConstant:
      break;
  }
  return ConstantArrivals{};
}

}  // namespace

namespace {

// A trace as one level. Its first rate holds during the warm-up.
Result<Level> TraceLevel(const LoadOptions& options) {
  const std::string text = TRY(ReadTextFile(options.trace));
  RateTrace trace =
      TRY_CONTEXT(ParseRateTrace(text, options.trace_speed, options.trace_scale), options.trace);
  const double mean = trace.mean_per_second(), length_s = trace.length_s();
  std::string name = fmt::format("trace {}, {:.6g}/s, {:.6g}/s at most", EscapeBytes(options.trace), mean,
                                 trace.peak_per_second());
  if (options.warm_up_s > 0) {
    for (RateTrace::Point& point : trace.points) point.at_s += options.warm_up_s;
    trace.points.insert(trace.points.begin(), {0, trace.points.front().per_second});
  }
  return Level{.scenario = Rate{mean, ProfileArrivals{std::move(trace)}, options.most_in_flight},
               .name = std::move(name),
               .length = FromSeconds(length_s)};
}

}  // namespace

Result<std::vector<Level>> LevelsOf(const LoadOptions& options) {
  std::vector<Level> levels;
  if (!options.trace.empty()) {
    levels.push_back(TRY(TraceLevel(options)));
    return levels;
  }
  if (!options.intervals.empty()) {
    const RxTimestamps arrivals = TRY(ArrivalsOf(options));
    const double rate = RateOf(std::get<TraceArrivals>(arrivals));
    levels.push_back({.scenario = Rate{rate, arrivals, options.most_in_flight},
                      .name = fmt::format("trace, {:.6g}/s", rate)});
    return levels;
  }
  const std::string& range = options.is_open() ? options.rate_range : options.concurrency_range;
  for (const double value : TRY(ParseRange(range.empty() ? "1" : range))) {
    if (options.is_open()) {
      levels.push_back({.scenario = Rate{value, TRY(ArrivalsOf(options)), options.most_in_flight},
                        .name = fmt::format("{} {:.6g}/s", ToString(options.distribution), value)});
    } else {
      if (value != std::floor(value) || value > 65536)
        return Invalid(fmt::format("a concurrency of {:g}: it is a whole number up to 65536", value));
      levels.push_back(
          {.scenario = Concurrency{static_cast<int>(value),
                                   options.sync ? Concurrency::Wait::kSync : Concurrency::Wait::kAsync},
           .name = fmt::format("concurrency {:.0f}", value)});
    }
  }
  return levels;
}

namespace {

// Names perf_analyzer's flags of its trials, which any of its lines may have, where they have no effect.
// Empty where none is given.
std::string IdleTrials(const LoadOptions& options, int repeats) {
  const LoadOptions usual;
  std::vector<std::string> idle;
  if (options.max_trials != usual.max_trials) idle.emplace_back("-r");
  if (options.stability_percentage != usual.stability_percentage && repeats == 1) idle.emplace_back("-s");
  const bool has_interval = options.measurement_interval_ms > 0;
  if (has_interval) idle.emplace_back("-p");
  if (idle.empty()) return "";
  const char* const length = options.request_count > 0 ? "--request-count" : "--duration";
  return fmt::format(
      "{} {} no effect: each level is played {}{}", fmt::join(idle, ", "), idle.size() == 1 ? "has" : "have",
      repeats == 1 ? "once" : fmt::format("{} times", repeats),
      has_interval ? fmt::format(", for as long as {} says", length) : "; --repeats N plays it more often");
}

}  // namespace

LevelLength LengthOf(const LoadOptions& options, const std::vector<Level>& levels) {
  if (!levels.empty() && levels.front().length > Duration{})
    return {.length = levels.front().length, .repeats = std::max(1, options.repeats), .note = ""};
  LevelLength length{.length = FromSeconds(options.duration_s > 0 ? options.duration_s : kUsualSeconds),
                     .requests = options.request_count,
                     .repeats = std::max(1, options.repeats),
                     .note = ""};
  const bool counts = options.measurement_mode == Windows::kCount || options.measurement_request_count > 0;
  if (options.request_count > 0 || options.duration_s > 0 ||
      (!counts && options.measurement_interval_ms == 0)) {
    length.note = IdleTrials(options, length.repeats);
    return length;
  }
  if (counts) {
    length.requests = options.measurement_request_count > 0 ? options.measurement_request_count : 50;
  } else {
    length.length = FromSeconds(options.measurement_interval_ms / 1e3);
  }
  if (options.repeats == 0) length.repeats = std::min(kUsualWindows, options.max_trials);
  length.note = fmt::format(
      "the length is fixed before the run, not by what it shows: {} of {} each; repeats more than {:g} % "
      "apart are SUSPECT",
      length.repeats == 1 ? "1 repeat" : fmt::format("{} repeats", length.repeats),
      length.requests > 0 ? fmt::format("{} requests", length.requests)
                          : fmt::format("{:g} s", Seconds(length.length)),
      options.stability_percentage);
  if (counts && options.measurement_interval_ms > 0) length.note += "; -p says nothing beside a count";
  return length;
}

int MostInFlight(const std::vector<Level>& levels) {
  int most = 1;
  for (const Level& level : levels) {
    if (const auto* closed = std::get_if<Concurrency>(&level.scenario))
      most = std::max(most, closed->in_flight);
    if (const auto* open = std::get_if<Rate>(&level.scenario)) most = std::max(most, open->most_in_flight);
  }
  return most;
}

Result<std::optional<MlperfLevel>> FindMlperf(LoadOptions& options) {
  if (!options.scenario) return std::nullopt;
  const MlperfScenario scenario = *options.scenario;
  MlperfRules rules = TRY(RulesOf(scenario, {.rate = options.target_rate, .depth = options.depth}));
  if (rules.samples_per_query > 1 && options.batch == 1) options.batch = rules.samples_per_query;
  if (options.duration_s == 0 && options.request_count == 0) options.duration_s = Seconds(rules.min_duration);
  if (rules.percentile && options.percentile == 0) options.percentile = 100 * *rules.percentile;
  Level level{.scenario = rules.play, .name = std::string(ToString(scenario))};
  return MlperfLevel{std::move(rules), std::move(level)};
}

}  // namespace weir::load
