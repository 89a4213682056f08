// The middle of some numbers, and other quantiles.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace weir::predict {

// The upper of the middle two for an even count. REQUIRES: at least one value.
template <typename T>
T Median(std::vector<T> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The least of `values` up to which the part `p` of the importance lies. REQUIRES: not empty, as many of
// both.
inline double WeightedQuantile(std::span<const double> values, std::span<const double> importance, double p) {
  std::vector<std::pair<double, double>> sorted;
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sorted.emplace_back(values[i], importance[i]);
    total += importance[i];
  }
  std::ranges::sort(sorted);
  double sum = 0;
  for (const auto& [value, weight] : sorted) {
    sum += weight;
    if (sum >= p * total) return value;
  }
  return sorted.back().first;
}

}  // namespace weir::predict
