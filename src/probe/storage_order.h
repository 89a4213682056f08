// The order of samples, and the times of steps. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/seed.h"

namespace weir::probe {

// Position in the global order -> index of the sample: a permutation of all samples each epoch, a pure
// function of seed, epoch and position. Keeps one epoch. One thread at a time.
class GlobalOrder {
 public:
  GlobalOrder(int64_t samples, Seed seed) : samples_(samples), seed_(seed) {}
  // A permutation of groups of neighbours, such as the samples of a shard. `begins` holds the first sample of
  // each group, and the number of samples at its end.
  GlobalOrder(std::vector<int64_t> begins, Seed seed)
      : samples_(begins.back()), seed_(seed), begins_(std::move(begins)) {}
  int64_t At(int64_t position);

 private:
  const int64_t samples_;
  const Seed seed_;
  const std::vector<int64_t> begins_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

// The reads of one epoch, as a count and a sum that does not depend on their order.
struct EpochReads {
  int64_t samples = 0;
  uint64_t sum = 0;

  void Add(int64_t sample);
  void Merge(const EpochReads& other);
  bool operator==(const EpochReads&) const = default;
};

// Accelerator time without threads. A step begins when the last one has ended and its data are there, so a
// late wake-up of the thread that watches costs the accelerators nothing. Pure.
class StepTimes {
 public:
  explicit StepTimes(Duration step) : step_(step) {}
  // Takes the moment at which a step's data were whole; returns the moment at which the step ends.
  Instant Next(Instant ready);
  Duration LastStall() const { return stall_; }
  Instant LastDeadline() const { return deadline_; }  // at which the data were wanted

 private:
  const Duration step_;
  Duration stall_{};
  Instant deadline_{};
  std::optional<Instant> end_;
};

}  // namespace weir::probe
