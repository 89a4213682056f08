// The best of many candidates that pass by once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.h"

namespace weir::serve {

// Keeps the `count` best candidates. `better(a, b)` is a strict order of all candidates. Holds at most
// 2 * count + 64 of them; n calls of Offer and one of Take make O(n + count * log(count)) comparisons on
// average, whatever the order of the candidates. Not thread-safe.
template <typename T, typename Better>
class TopK {
 public:
  TopK(size_t count, Better better) : count_(count), room_(2 * count + 64), better_(std::move(better)) {
    CHECK(count > 0);
  }

  void Offer(const T& candidate) {
    if (is_full_ && !better_(candidate, kept_[count_ - 1])) return;
    kept_.push_back(candidate);
    if (kept_.size() == room_) Prune();
  }

  // Returns the best candidates, the best first, and leaves none.
  std::vector<T> Take() {
    if (kept_.size() > count_) Prune();
    std::sort(kept_.begin(), kept_.end(), better_);
    is_full_ = false;
    return std::exchange(kept_, {});
  }

 private:
  // Afterwards the worst candidate that is kept stands at count_ - 1.
  void Prune() {
    std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count_) - 1, kept_.end(),
                     better_);
    kept_.resize(count_);
    is_full_ = true;
  }

  const size_t count_, room_;
  Better better_;
  std::vector<T> kept_;
  bool is_full_ = false;
};

}  // namespace weir::serve
