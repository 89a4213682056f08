// std::ranges::contains of C++23, which the standard library of g++ 12 lacks.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>

namespace weir {

template <typename Range, typename Value, typename Projection = std::identity>
bool Contains(const Range& range, const Value& value, Projection projection = {}) {
  return std::ranges::find(range, value, projection) != std::ranges::end(range);
}

}  // namespace weir
