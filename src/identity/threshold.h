// The least cosine of a match, from the false alarms that may be; shares with intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace weir::identity {

// How high strangers score: the best cosine of a vector with the rows of other names, measured by searching
// with enrolled rows. Chances fall and scores rise along the vectors.
struct StrangerScores {
  uint64_t enrolled = 0;        // rows when it was measured
  uint64_t searches = 0;        // rows searched with
  std::vector<double> chances;  // that a stranger's best score is at least ...
  std::vector<double> scores;   // ... this
  // A generalised Pareto distribution of the excess over the score that one search in 50 reaches.
  double tail_scale = 0, tail_shape = 0;
  bool operator==(const StrangerScores&) const = default;
};

// Summarises best scores, at least 100.
StrangerScores SummariseStrangers(std::vector<double> best, uint64_t enrolled);

// Returns the cosine that the best of `enrolled` rows exceeds for a share `false_alarms` of strangers (FPIR).
// Where E rows were measured and the strangers' best score stays below T with chance G(T), it stays below T
// among N rows with chance G(T)^(N / E). Chances below one search in 50 follow the tail's distribution
// (Pickands 1975), fitted by moments (Hosking and Wallis 1987) with a shape of at most 0, since scores are
// bounded. kUnsupported where nothing was measured, or for a rate below a tenth of 1 / searches.
Result<double> ThresholdFor(double false_alarms, uint64_t enrolled, const StrangerScores& strangers);

struct Share {
  double value = 0, low = 0,
         high = 0;  // the interval holds the true share with 95 % confidence (Wilson 1927)
};
Share ShareOf(uint64_t hits, uint64_t tries);  // REQUIRES: tries > 0

}  // namespace weir::identity
