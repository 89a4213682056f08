// Which quantiles a sample can tell of, and how closely, whatever the distribution. Pure functions over
// numbers. Ranks are those of order statistics: 1 is the least of n values, n the greatest.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::stats {

// Whether n values say enough of their p-quantile to report it: at least ten of them are to be expected
// beyond it, on its thinner side. The median needs 20, p90 and p10 need 100, p99 1,000, p99.9 10,000.
bool Supports(double p, int64_t n);

// The rank of the p-quantile: ceil(p n), at least 1. p is in [0, 1]; a product that is whole but for the
// rounding of p counts as whole.
int64_t NearestRank(double p, int64_t n);

// The p-quantile lies between these two order statistics.
struct RankInterval {
  int64_t low = 0;
  int64_t high = 0;
  double coverage = 0;  // with this probability, at least what was asked for
};

// The ranks that enclose the p-quantile of a continuous distribution with at least this confidence, by the
// binomial distribution of how many of n values lie below it, at most half of the rest in each tail (Conover,
// Practical Nonparametric Statistics, 1999, section 3.2; David and Nagaraja, Order Statistics, 2003, section
// 7.1). Nothing where n is too small for that, or for p or confidence not in (0, 1). Under a millisecond
// up to n = 10^9.
std::optional<RankInterval> QuantileRanks(double p, int64_t n, double confidence);

}  // namespace weir::stats
