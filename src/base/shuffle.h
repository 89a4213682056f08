// An order by chance.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/seed.h"

namespace weir {

// Puts items in an order by chance, each order alike (Fisher and Yates, as Durstenfeld 1964 has it). The same
// on every machine, which std::shuffle is not.
template <typename T>
void Shuffle(std::vector<T>& items, Random& random) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<size_t>(random.Integer(0, static_cast<int64_t>(i) - 1))]);
  }
}

}  // namespace weir
