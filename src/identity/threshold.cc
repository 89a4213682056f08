#include "identity/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::identity {

StrangerScores SummariseStrangers(std::vector<double> best, uint64_t enrolled) {
  CHECK(best.size() >= 100);
  std::ranges::sort(best, std::greater<>());
  StrangerScores summary;
  summary.enrolled = enrolled;
  summary.searches = best.size();
  const auto n = static_cast<double>(best.size());
  for (size_t rank = best.size(); rank >= 1;) {
    summary.chances.push_back(static_cast<double>(rank) / (n + 1));
    summary.scores.push_back(best[rank - 1]);
    const size_t less = rank / 20;  // steps of 5 %
    rank -= std::max<size_t>(less, 1);
  }
  const size_t top = best.size() / 50;
  double mean = 0, variance = 0;
  for (size_t i = 0; i < top; ++i) mean += (best[i] - best[top]) / static_cast<double>(top);
  for (size_t i = 0; i < top; ++i) {
    const double off = best[i] - best[top] - mean;
    variance += off * off / static_cast<double>(top);
  }
  const double ratio = variance > 0 ? mean * mean / variance : 1;
  summary.tail_shape = std::clamp(0.5 * (1 - ratio), -1.0, 0.0);
  summary.tail_scale = mean * (1 - summary.tail_shape);
  return summary;
}

Result<double> ThresholdFor(double false_alarms, uint64_t enrolled, const StrangerScores& strangers) {
  const auto& chances = strangers.chances;
  const auto& scores = strangers.scores;
  if (chances.size() < 2 || chances.size() != scores.size() || strangers.enrolled == 0) {
    return Fail(ErrorCode::kUnsupported,
                "too few identities are enrolled to measure how high strangers score: give --threshold");
  }
  const double least = 0.1 / static_cast<double>(strangers.searches);
  if (!(false_alarms >= least && false_alarms < 1)) {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("a false-alarm rate of {}: {} searches support rates from {} up to 1; give --threshold",
                    false_alarms, strangers.searches, least));
  }
  const double more =
      static_cast<double>(std::max<uint64_t>(enrolled, 1)) / static_cast<double>(strangers.enrolled);
  const double chance = -std::expm1(std::log1p(-false_alarms) / more);
  constexpr double kTail = 1.0 / 50;
  const auto interpolate = [&](double wanted) {
    const auto after = std::ranges::find_if(chances, [&](double c) { return c <= wanted; });
    if (after == chances.begin()) return scores.front();
    if (after == chances.end()) return scores.back();
    const auto i = static_cast<size_t>(after - chances.begin());
    const double part =
        (std::log(chances[i - 1]) - std::log(wanted)) / (std::log(chances[i - 1]) - std::log(chances[i]));
    return scores[i - 1] + part * (scores[i] - scores[i - 1]);
  };
  if (chance >= kTail) return interpolate(chance);
  const double shape = strangers.tail_shape;
  const double above =
      shape > -1e-6 ? std::log(kTail / chance) : (std::pow(chance / kTail, -shape) - 1) / shape;
  return std::min(1.0, interpolate(kTail) + strangers.tail_scale * above);
}

Share ShareOf(uint64_t hits, uint64_t tries) {
  CHECK(tries > 0);
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(tries);
  const double p = static_cast<double>(hits) / n, middle = p + kZ * kZ / (2 * n);
  const double half = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n)), whole = 1 + kZ * kZ / n;
  return {p, std::max(0.0, (middle - half) / whole), std::min(1.0, (middle + half) / whole)};
}

}  // namespace weir::identity
