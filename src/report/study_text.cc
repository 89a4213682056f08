#include "report/study_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/number.h"

namespace weir::report {
namespace {

std::optional<double> Times(std::optional<double> value, double scale) {
  return value ? std::optional(*value * scale) : std::nullopt;
}

}  // namespace

std::optional<double> LowAt(std::optional<double> low, double least) {
  return low && least >= 0 ? std::optional(std::max(0.0, *low)) : low;
}

std::string IntervalText(const results::Figures* figures, double scale) {
  if (figures == nullptr) return "-";
  return WithInterval(figures->mean * scale, Times(LowAt(figures->low, figures->min), scale),
                      Times(figures->high, scale));
}

std::string IntervalText(const results::RatioFigures& ratio) {
  return WithInterval(ratio.ratio, LowAt(ratio.low, ratio.ratio), ratio.high);
}

std::string ToldText(const results::TestedRatio& tested) {
  return tested.told == results::TestedRatio::kNothing && tested.limit
             ? fmt::format("{} (limit {})", tested.told, Percent(*tested.limit))
             : tested.told;
}

std::string ReasonsText(const results::Verdict& verdict) {
  std::string text;
  for (const results::Cause& cause : verdict.causes)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", ToString(cause.reason), cause.evidence);
  return text;
}

}  // namespace weir::report
