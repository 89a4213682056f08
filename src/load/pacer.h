// Waiting for a moment to within microseconds: the kernel's timer brings a thread near, turning on the spot
// does the rest.
#pragma once

#include "base/clock.h"

namespace weir::load {

// Of the thread that makes it, whose timer slack it sets to 1 ns.
class Pacer {
 public:
  static constexpr Duration kNear = 120us;  // a sleep ends up to so much late on most machines

  explicit Pacer(const Clock& clock);

  // Returns at `when`, or at once where that has passed.
  void WaitUntil(Instant when);
  Duration spun() const { return spun_; }  // time spent turning: CPU time that no request cost

 private:
  const Clock& clock_;
  Duration spun_{};
};

}  // namespace weir::load
