// The time in which a device was busy, of work that overlaps.
#pragma once

#include <map>

#include "base/clock.h"

namespace weir::infer {

// One thread at a time.
class BusyUnion {
 public:
  // Work from `begin` to `end`; it may have begun before what was added last, by up to 10 s.
  void Add(Instant begin, Instant end);
  // Returns the time in which there was some.
  Duration sum() const { return sum_; }

 private:
  std::map<Instant, Instant> spans_;  // disjoint, by their beginnings
  Duration sum_{};
};

}  // namespace weir::infer
