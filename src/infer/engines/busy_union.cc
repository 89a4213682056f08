#include "infer/engines/busy_union.h"

#include <algorithm>
#include <iterator>

namespace weir::infer {

void BusyUnion::Add(Instant begin, Instant end) {
  if (end <= begin) return;
  auto next = spans_.upper_bound(begin);
  if (next != spans_.begin() && std::prev(next)->second >= begin) next = std::prev(next);
  while (next != spans_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    sum_ -= next->second - next->first;
    next = spans_.erase(next);
  }
  spans_.emplace(begin, end);
  sum_ += end - begin;
  // Spans that are long over stay counted.
  while (spans_.size() > 1 && spans_.begin()->second < end - Duration(10s)) spans_.erase(spans_.begin());
}

}  // namespace weir::infer
