// How long a place of a closed loop waits after a connection that could not be had.
#pragma once

#include "base/clock.h"
#include "load/generator/sample.h"

namespace weir::load {

// A server that refuses connections answers at once, and a loop that follows each answer by the next request
// would do nothing but ask. So a place waits 1 ms after the first failure of this kind, twice as long after
// each more in a row, 100 ms at most; any other outcome, also of another kind of failure, makes it begin
// anew: the server was there. A value.
class Backoff {
 public:
  static constexpr Duration kShortest = 1ms, kLongest = 100ms;

  // Returns the time to wait before the next request after one that ended with `outcome`.
  Duration After(Outcome outcome) {
    if (outcome != Outcome::kNoServer) {
      next_ = kShortest;
      return {};
    }
    const Duration wait = next_;
    next_ = wait * 2 < kLongest ? wait * 2 : kLongest;
    return wait;
  }

 private:
  Duration next_ = kShortest;
};

}  // namespace weir::load
