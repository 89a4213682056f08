// The least cosine of a match, from the false alarms that may be; shares with intervals.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace weir::identity {

// Returns the chance that two random directions in `dimension` dimensions (not necessarily whole, above 3)
// have a cosine above `cosine`, from the density (1 - x^2)^((dimension - 3) / 2).
double ChanceAbove(double cosine, double dimension);

// Returns the cosine that a stranger's best of `enrolled` rows exceeds with chance `false_alarms` (FPIR): one
// comparison may exceed it with chance 1 - (1 - false_alarms)^(1 / enrolled). `mean_squared_cosine` of rows
// of different names gives the dimension 1 / mean_squared_cosine in which they act like random directions.
// kUnsupported where that dimension is 3 or less.
Result<double> ThresholdFor(double false_alarms, uint64_t enrolled, double mean_squared_cosine);

struct Share {
  double value = 0, low = 0,
         high = 0;  // the interval holds the true share with 95 % confidence (Wilson 1927)
};
Share ShareOf(uint64_t hits, uint64_t tries);  // REQUIRES: tries > 0

}  // namespace weir::identity
