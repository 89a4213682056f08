// Medians and weighted quantiles.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace weir::stats {

// Returns the median; for an even count the upper of the middle two. REQUIRES: at least one value.
template <typename T>
T Median(std::vector<T> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Returns the least of `values` up to which the share `p` of the importance lies. REQUIRES: not empty, as
// many of both.
inline double WeightedQuantile(std::span<const double> values, std::span<const double> importance, double p) {
  std::vector<std::pair<double, double>> items;
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    items.emplace_back(values[i], importance[i]);
    total += importance[i];
  }
  // The result lies in [first, last), with `before` of the importance below.
  auto first = items.begin(), last = items.end();
  double before = 0;
  while (last - first > 1) {
    const auto middle = first + (last - first - 1) / 2;
    std::nth_element(first, middle, last);
    double sum = before;
    for (auto item = first; item <= middle; ++item) sum += item->second;
    if (sum >= p * total) {
      last = middle + 1;
    } else {
      before = sum;
      first = middle + 1;
    }
  }
  return first->first;
}

}  // namespace weir::stats
