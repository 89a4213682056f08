#include "stats/family.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stats/distributions.h"
#include "stats/summary.h"

namespace weir::stats {

std::vector<double> HolmAdjust(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double highest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(order.size() - rank);
    highest = std::max(highest, std::min(1.0, scaled));
    adjusted[order[rank]] = highest;
  }
  return adjusted;
}

double SimultaneousConfidence(double confidence, size_t count) {
  return 1 - (1 - confidence) / static_cast<double>(std::max<size_t>(1, count));
}

double SimultaneousP(double p, size_t count) {
  return std::min(1.0, p * static_cast<double>(std::max<size_t>(1, count)));
}

double StudentP(double t, double degrees) {
  if (std::isinf(t)) return 0;
  return 2 * StudentTail(degrees, std::abs(t));
}

double PairedP(std::span<const double> log_ratios) {
  const auto summary = Summarise(log_ratios);
  if (!summary || summary->n < 2 || summary->mean == 0) return 1;
  return StudentP(summary->mean / *summary->standard_error, static_cast<double>(summary->n - 1));
}

double DifferenceLimit(double low, double high) { return std::max(high, 1 / low) - 1; }

}  // namespace weir::stats
