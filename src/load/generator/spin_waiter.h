// Waiting for a moment to within microseconds: the kernel's timer brings a thread near, turning on the spot
// does the rest.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace weir::load {

// Waits on the thread that makes it, and sets that thread's timer slack to 1 ns.
class SpinWaiter {
 public:
  // Returns how long before the end of a wait to spin. A sleep ends up to 120 us late on most machines, and
  // up to 400 us on an idle core of a virtual one. Spinning takes at most an eighth of a long wait.
  static constexpr Duration Near(Duration wait) {
    return std::clamp(wait / 8, Duration{120us}, Duration{400us});
  }

  explicit SpinWaiter(const Clock& clock);

  // Returns at `when`, or at once where that has passed.
  void WaitUntil(Instant when);
  Duration spun() const { return spun_; }  // time spent turning: CPU time that no request cost

 private:
  const Clock& clock_;
  Duration spun_{};
};

}  // namespace weir::load
