// When an accelerator that is not there would begin and end each batch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/seed.h"

namespace weir::infer {

// A batch of n items costs base + n * per_item. Each takes the stream that is free first, and that stream's
// busy-until moves on from where it was, not from when somebody noticed: late wake-ups do not add up.
// Pure: no clock, no thread. Not thread-safe; EmulatedSession guards it.
class BusySchedule {
 public:
  struct Options {
    Duration base{};      // per batch
    Duration per_item{};  // per item of it
    int streams = 1;      // batches side by side, at least 1
    double jitter =
        0;         // in [0, 1): a cost is multiplied by a number drawn evenly from 1 - jitter to 1 + jitter
    Seed seed{1};  // of the jitter
  };
  explicit BusySchedule(const Options& options);

  struct Slot {
    Instant start;
    Instant end;
  };
  // Places a batch that is given at `now`, behind those already placed. REQUIRES: `now` does not run
  // backwards.
  Slot Reserve(int64_t items, Instant now);

  // Returns for each stream its computing time until `now`.
  std::vector<Duration> BusyUntil(Instant now) const;

 private:
  struct Stream {
    Instant busy_until{};
    Duration reserved{};  // in all, past and to come
  };
  Duration Cost(int64_t items);

  const Options options_;
  Random random_;
  std::vector<Stream> streams_;
};

}  // namespace weir::infer
