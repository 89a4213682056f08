// The least that a batch takes, learnt from those that have ended.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace weir::infer {

// Pure: the caller passes the times. Not thread-safe.
class BatchTime {
 public:
  // A batch took `took` and ended at `now`.
  void Add(Duration took, Instant now);

  // The shortest of the last eight: who is refused for it would hardly have been in time. Nothing before
  // there are eight, and when the last one ended a second and two such times ago: whoever comes then is let
  // through, and measures anew, so that a slow spell cannot refuse everybody for ever.
  std::optional<Duration> Least(Instant now) const;

 private:
  std::array<Duration, 8> last_{};
  size_t count_ = 0;
  Instant ended_{};
};

}  // namespace weir::infer
