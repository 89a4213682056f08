// A served model's counters since it was loaded, as the protocol's statistics report them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"
#include "infer/call.h"
#include "oip/api.h"

namespace weir::serve {

// Turns instants into time since 1970, to the second: the wall clock is read once.
class WallTime {
 public:
  explicit WallTime(Instant now);
  uint64_t MillisecondsAt(Instant when) const;

 private:
  const Instant read_at_;
  const int64_t milliseconds_;  // at `read_at_`
};

// Thread-safe.
class Statistics {
 public:
  // One request: `received` is when its last byte was there, `answered` when its outputs were ready to send.
  struct Answered {
    Instant received{}, answered{};
    infer::Times times;
    int64_t rows = 1;            // of this request
    int64_t executed_batch = 1;  // rows that were computed together
  };
  // How many batches are complete with it.
  uint64_t Succeeded(const Answered& answered);
  void Failed(Duration took);

  // Name and version are left empty.
  oip::ModelStatistics Get(const WallTime& wall) const;

 private:
  // Requests that were computed in batches of one size. Every request adds its rows, and its times once for
  // each of them; divided by the size that counts every batch once.
  struct OfBatch {
    uint64_t rows = 0;
    Duration compute_input{}, compute_infer{}, compute_output{};
  };

  mutable Mutex mutex_;
  oip::ModelStatistics totals_ GUARDED_BY(mutex_);
  std::optional<Instant> last_ GUARDED_BY(mutex_);
  std::map<int64_t, OfBatch> batches_ GUARDED_BY(mutex_);
};

// The phases of one request that the engine's stamps tell; those that are not known are 0.
// Waiting is queue, for a place in a batch as for the engine.
struct Phases {
  Duration queue{}, compute_input{}, compute_infer{};
  Duration download{};  // from an accelerator: part of the output's time, and before `done`
  std::optional<Instant> done;
};
Phases PhasesOf(const infer::Times& times);

// Returns the server's times of one request, whose first and last byte came and whose outputs were ready
// at these moments.
struct ServerTimes {
  Instant first_byte{}, received{}, answered{};
};
infer::ServerDurations DurationsOf(const ServerTimes& stay, const infer::Times& times);

}  // namespace weir::serve
