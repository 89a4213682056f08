// Where a series of observations, in the order they came in, has left its start behind, and whether it drifts
// still. Pure functions over numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace weir::stats {

struct Truncation {
  int64_t cut = 0;  // observations to leave out at the front, a multiple of 5
  // False: the best place to cut lies past the middle, so the series is too short to tell its start from the
  // rest, or does not settle; `cut` is then the best of the first half.
  bool settled = false;
};

// MSER-5 (White, Cobb and Spratt, A Comparison of Five Steady-State Truncation Heuristics for Simulation,
// 2000): the cut that leaves the mean of the rest with the least standard error, counted over batches of 5.
// Observations after the last whole batch are not looked at, and no cut leaves less than 5 batches, of which
// the standard error says little. Nothing below 10 batches, or where an observation is not finite.
std::optional<Truncation> Mser5(std::span<const double> observations);

struct Trend {
  double rho = 0;      // from -1, always falling, to 1, always rising
  double p_value = 0;  // two-sided: of a rho at least as far from 0 where order means nothing
};

// Spearman's rank correlation of the values with their positions, ties at the mean of their ranks; p_value by
// Student's t of n - 2 degrees (Kendall and Stuart, The Advanced Theory of Statistics, volume 2, chapter 31),
// which holds for independent values. Nothing below 10 values, where all are equal, or where one is not
// finite.
std::optional<Trend> SpearmanTrend(std::span<const double> values);

}  // namespace weir::stats
