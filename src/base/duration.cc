#include "base/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace weir {

Result<Duration> ParseDuration(std::string_view text, Duration most) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  constexpr double kLongest = 9e18;  // what a Duration holds, in ns
  const std::string_view plain = text.substr(text.starts_with('+') ? 1 : 0);
  if (plain == "0") return Duration::zero();
  for (const auto& [unit, ns] : kUnits) {
    if (!plain.ends_with(unit)) continue;
    double value = 0;
    const std::string_view number = plain.substr(0, plain.size() - unit.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size()) continue;
    if (!std::isfinite(value) || value < 0 || value * ns > kLongest) break;
    const Duration duration(std::llround(value * ns));
    if (duration > most)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} is above {:g} s, the most allowed", Quoted(text), Seconds(most)));
    return duration;
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is not a duration: give a number with us, ms, s, m or h, as in 180us or 10m",
                          Quoted(text)));
}

}  // namespace weir
