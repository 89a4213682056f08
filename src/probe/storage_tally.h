// Times and counts of reads, and of the stalls that they cause.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "probe/storage_read.h"
#include "stats/histogram.h"

namespace weir::probe {

// The time that accelerators waited, by the work on the last sample of the step meanwhile.
struct Stalls {
  Duration queue{};  // before its read began: all readers were busy, or the depth was used up
  Duration open{}, read{}, close{};
  Duration decode{}, augment{};
  Duration hosts{};  // after it: the data of other hosts were not whole
  Duration Total() const { return queue + open + read + close + decode + augment + hosts; }
  void Add(const Stalls& other);
};

// Times of the stages of steps that waited, in nanoseconds: one value for each stage of each such step.
struct StallTimes {
  stats::Histogram queue, open, read, close, decode, augment, hosts;
  void Add(const Stalls& stalls);
  void Merge(const StallTimes& other);
};

// Times and counts of single reads.
struct ReadTally {
  stats::Histogram open_ns, read_ns, close_ns;
  stats::Histogram decode_ns, augment_ns;      // of samples that were decoded
  uint64_t bytes = 0;                          // read
  uint64_t cached_bytes = 0, asked_bytes = 0;  // of reads whose cached part is known
  int64_t unknown_cache = 0;                   // reads whose cached part is not known
  int64_t errors = 0;                          // hung reads included
  std::vector<std::string> first_errors;       // at most ten
  std::vector<std::string> hung;               // samples whose read did not end within the timeout

  void Add(const ReadMoments& moments);
  void AddError(std::string message);
  void Merge(const ReadTally& other);
  std::optional<double> CachedShare() const;  // nullopt if no read's cached part is known
};

}  // namespace weir::probe
