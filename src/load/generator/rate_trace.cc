#include "load/generator/rate_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace weir::load {
namespace {

constexpr double kNever = 1e9;  // seconds

std::optional<double> NumberOf(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::unexpected<Error> Wrong(int line, std::string_view fault) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}", line, fault));
}

// Requests between two points.
double AreaOf(const RateTrace::Point& a, const RateTrace::Point& b) {
  return (a.per_second + b.per_second) / 2 * (b.at_s - a.at_s);
}

Result<RateTrace::Point> ParsePoint(std::string_view line, int number) {
  const size_t comma = line.find(',');
  const auto at = NumberOf(line.substr(0, comma));
  const auto rate = comma == std::string_view::npos ? std::nullopt : NumberOf(line.substr(comma + 1));
  if (!at || !rate) return Wrong(number, "it is not SECONDS,REQUESTS_PER_SECOND");
  if (*at < 0 || *at > kNever) return Wrong(number, "the time is below 0 or above 1e9 seconds");
  if (*rate < 0 || *rate > 1e8) return Wrong(number, "the rate is below 0 or above 1e8 requests a second");
  return RateTrace::Point{*at, *rate};
}

}  // namespace

double RateTrace::mean_per_second() const {
  double requests = 0;
  for (size_t i = 1; i < points.size(); ++i) requests += AreaOf(points[i - 1], points[i]);
  return length_s() > 0 ? requests / length_s() : 0;
}

double RateTrace::peak_per_second() const {
  double peak = 0;
  for (const Point& point : points) peak = std::max(peak, point.per_second);
  return peak;
}

Result<RateTrace> ParseRateTrace(std::string_view text, double speed, double scale) {
  RateTrace trace;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (number == 1 || line.empty() || line == "\r") continue;  // the names
    RateTrace::Point point = TRY(ParsePoint(line, number));
    if (trace.points.empty() && point.at_s != 0) return Wrong(number, "the first time is not 0");
    point.at_s /= speed;
    point.per_second *= scale;
    if (!trace.points.empty() && point.at_s <= trace.length_s())
      return Wrong(number, "the time is not later than on the line before");
    trace.points.push_back(point);
  }
  if (trace.points.size() < 2)
    return Fail(ErrorCode::kInvalidArgument,
                "a trace has a line of names and two or more lines SECONDS,REQUESTS_PER_SECOND");
  if (trace.mean_per_second() <= 0)
    return Fail(ErrorCode::kInvalidArgument, "the rates are all 0: they make no requests");
  return trace;
}

double TraceInverse::SecondsAt(double requests) {
  const auto& points = trace_.points;
  while (segment_ + 1 < points.size()) {
    const RateTrace::Point &a = points[segment_], &b = points[segment_ + 1];
    const double area = AreaOf(a, b);
    if (requests <= before_ + area && area > 0) {
      const double more = std::max(0.0, requests - before_);
      const double slope = (b.per_second - a.per_second) / (b.at_s - a.at_s);
      const double root = std::sqrt(std::max(0.0, a.per_second * a.per_second + 2 * slope * more));
      if (a.per_second + root <= 0) return a.at_s;
      return std::min(b.at_s, a.at_s + 2 * more / (a.per_second + root));
    }
    before_ += area;
    ++segment_;
  }
  const RateTrace::Point& last = points.back();
  return last.per_second > 0 ? std::min(kNever, last.at_s + (requests - before_) / last.per_second) : kNever;
}

void TraceWindows::Add(const Sample& sample, Instant from) {
  const double at = Seconds(sample.planned - from) / width_s();
  const auto index = static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(kCount - 1)));
  Window& window = windows_[index];
  if (sample.outcome == Outcome::kUnsent) {
    window.unsent += 1;
  } else if (sample.outcome != Outcome::kAnswered) {
    window.failed += 1;
  } else {
    window.answered += 1;
    window.response.Add(std::max<int64_t>(0, sample.response().count()));
  }
}

void TraceWindows::Merge(const TraceWindows& more) {
  for (size_t i = 0; i < windows_.size(); ++i) {
    windows_[i].answered += more.windows_[i].answered;
    windows_[i].failed += more.windows_[i].failed;
    windows_[i].unsent += more.windows_[i].unsent;
    windows_[i].response.Merge(more.windows_[i].response);
  }
}

}  // namespace weir::load
