#include "infer/batch_time.h"

#include <algorithm>

namespace weir::infer {

void BatchTime::Add(Duration took, Instant now) {
  last_[count_++ % last_.size()] = took;
  ended_ = now;
}

std::optional<Duration> BatchTime::Least(Instant now) const {
  if (count_ < last_.size()) return std::nullopt;
  const Duration least = *std::ranges::min_element(last_);
  if (now - ended_ > 1s + 2 * least) return std::nullopt;
  return least;
}

}  // namespace weir::infer
