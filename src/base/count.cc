#include "base/count.h"

#include <fmt/format.h>

#include <cmath>

namespace weir {

std::string Count(int64_t n) {
  std::string digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string Count(int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", Count(n), noun, n == 1 ? "" : "s");
}

std::string Short(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1e15) return fmt::format("{:.2g}", value);
  if (size >= 9.995e4) return Count(std::llround(value));
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.0995 || size == 0) return fmt::format("{:.2f}", value);
  return fmt::format("{:.2g}", value);
}

std::string Size(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 999.5 && unit < 4) {
    bytes /= 1000;
    unit += 1;
  }
  return Short(bytes) + " " + kUnits[unit];
}

}  // namespace weir
