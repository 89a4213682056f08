// The middle of some numbers.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace weir::predict {

// The upper of the middle two for an even count. REQUIRES: at least one value.
template <typename T>
T Median(std::vector<T> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace weir::predict
