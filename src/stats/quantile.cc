#include "stats/quantile.h"

#include <algorithm>
#include <cmath>

#include "stats/distributions.h"

namespace weir::stats {
namespace {

constexpr double kBeyond = 10;       // values to be expected beyond a quantile that is reported
constexpr double kRounding = 1e-15;  // relative; p is rounded to a double, and the product once more

// Returns the probability that at most k of n values lie below the p-quantile (NIST DLMF 8.17.5).
double AtMost(int64_t k, int64_t n, double p) {
  if (k < 0) return 0;
  if (k >= n) return 1;
  return IncompleteBetaRest(static_cast<double>(k + 1), static_cast<double>(n - k), p);
}

// The same for more than k, without the loss of digits of 1 - AtMost.
double MoreThan(int64_t k, int64_t n, double p) {
  if (k < 0) return 1;
  if (k >= n) return 0;
  return IncompleteBeta(static_cast<double>(k + 1), static_cast<double>(n - k), p);
}

}  // namespace

bool Supports(double p, int64_t n) {
  const double count = static_cast<double>(n);
  return count * std::min(p, 1 - p) >= kBeyond - count * kRounding;
}

int64_t NearestRank(double p, int64_t n) {
  const double rank = p * static_cast<double>(n);
  return std::max<int64_t>(1, std::min(n, static_cast<int64_t>(std::ceil(rank * (1 - kRounding)))));
}

std::optional<RankInterval> QuantileRanks(double p, int64_t n, double confidence) {
  if (n < 1 || !(p > 0 && p < 1) || !(confidence > 0 && confidence < 1)) return std::nullopt;
  const double tail = (1 - confidence) / 2;
  // The normal approximation is off by a few ranks at any n (Cornish and Fisher), so exact steps from there
  // are few.
  const double mean = p * static_cast<double>(n);
  const double half_width = NormalQuantile(tail) * std::sqrt(mean * (1 - p));

  // low is the greatest with P(B < low) <= tail, high the least with P(B >= high) <= tail.
  int64_t low = static_cast<int64_t>(mean - half_width);
  while (AtMost(low, n, p) <= tail) ++low;
  while (AtMost(low - 1, n, p) > tail) --low;
  int64_t high = static_cast<int64_t>(std::ceil(mean + half_width));
  while (MoreThan(high - 2, n, p) <= tail) --high;
  while (MoreThan(high - 1, n, p) > tail) ++high;
  if (low < 1 || high > n) return std::nullopt;
  return RankInterval{
      .low = low, .high = high, .coverage = 1 - AtMost(low - 1, n, p) - MoreThan(high - 1, n, p)};
}

}  // namespace weir::stats
