// Two questions answered by rates of several runs: the gain of each added storage unit, and the number of
// reads in flight at which an added latency stops mattering.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace weir::probe {

// A mean over rounds with its 95 % interval; no interval for one round.
struct Estimate {
  double value = 0;
  std::optional<double> low, high;
  bool operator==(const Estimate&) const = default;
};

// A rate in samples/s with the first units together, and the part of its equal share that the last one added.
struct UnitRate {
  std::string path;  // of the last unit
  Estimate samples_per_s;
  // Gain by the last unit over the mean rate of a unit before it: 1 where the rate grows in proportion.
  // Absent for the first unit.
  std::optional<Estimate> share;
  std::optional<Estimate> alone;  // of a storage by itself
};

// Whether the slowest and the fastest storage alone differ so much that no share says anything.
bool AreUnequal(const std::vector<UnitRate>& units);

// Returns the rate in samples/s of the first `units` units.
using UnitTrial = std::function<Result<double>(int units, int round)>;

// Measures each number of units once in each round, upwards and downwards by turns. Errors of a trial end it.
Result<std::vector<UnitRate>> MeasureUnits(const std::vector<std::string>& paths, int rounds,
                                           const UnitTrial& trial);

// Returns the rate in samples/s of these storages together, by their places in the list of paths.
using StoragesTrial = std::function<Result<double>(const std::vector<size_t>& units, int round)>;

// Measures each storage alone, and then as MeasureUnits does. Storages of unequal speed have no shares and
// come fastest first, so that the result does not depend on the order of the paths.
Result<std::vector<UnitRate>> MeasureStorages(const std::vector<std::string>& paths, int rounds,
                                              const StoragesTrial& trial);

// The same demand with and without an added latency, at one number of reads in flight.
struct LatencyLevel {
  int reads_in_flight = 1;
  Estimate samples_per_s, delayed_samples_per_s;
  Estimate kept;  // delayed over not delayed, by rounds
};

struct LatencyAnswer {
  Duration added{};
  double demand_samples_per_s = 0;
  std::vector<LatencyLevel> levels;
  // The least level from which on at least 99 % of the rate is kept; absent where none is enough.
  std::optional<int> enough;
};

// Returns the rate in samples/s with so many reads in flight.
using LatencyTrial = std::function<Result<double>(int reads_in_flight, bool delayed, int round)>;

// Measures each level with and without the latency, side by side, once in each round. Ends after two levels
// in a row that keep the rate.
Result<LatencyAnswer> MeasureLatency(Duration added, double demand_samples_per_s,
                                     const std::vector<int>& levels, int rounds, const LatencyTrial& trial);

}  // namespace weir::probe
