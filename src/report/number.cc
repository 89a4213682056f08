#include "report/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/count.h"

namespace weir::report {

std::string Number(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e9 || size < 1e-4) return fmt::format("{:.3e}", value);
  if (size >= 999.95) return Count(std::llround(value));
  const int before =
      std::max(0, static_cast<int>(std::floor(std::log10(size))) + 1);  // digits of the whole part
  const int zeros = size < 1 ? static_cast<int>(-std::floor(std::log10(size))) - 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, std::max(0, 4 - before + zeros));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string WithInterval(double value, const std::optional<double>& low, const std::optional<double>& high) {
  if (!low || !high) return Number(value);
  return fmt::format("{} ({} to {})", Number(value), Number(*low), Number(*high));
}

std::string Percent(double share) {
  if (!std::isfinite(share)) return "-";
  const double percent = 100 * share;
  if (std::abs(percent) < 0.005) return "0 %";
  std::string text = fmt::format("{:.{}f}", percent, std::abs(percent) < 10 ? 2 : 1);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " %";
}

std::string Exact(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

}  // namespace weir::report
