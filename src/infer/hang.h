// Whether a batch takes so much longer than those before it that its engine must hang.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace weir::infer {

// The time that a batch is expected to take at most, learnt from those that have ended. Pure: the caller
// passes the times. Not thread-safe.
class ExpectedTime {
 public:
  // A batch with `bytes` of inputs took `took`.
  void Add(Duration took, size_t bytes);

  // Returns the longest of the last eight, each stretched to `bytes` where it had fewer. Returns nullopt
  // before the first has ended: that one may compile the model, and is not judged.
  std::optional<Duration> Of(size_t bytes) const;

 private:
  struct Ended {
    Duration took{};
    size_t bytes = 0;
  };
  std::array<Ended, 8> last_{};
  size_t count_ = 0;
};

// A batch that hangs.
struct Hang {
  Duration running{}, expected{};
};
// Judges a batch that began at `since`: it hangs when it has run for ten times `expected` and for 10 s.
std::optional<Hang> JudgeHang(Instant since, std::optional<Duration> expected, Instant now);

}  // namespace weir::infer
