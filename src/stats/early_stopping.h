// MLPerf's early stopping: what a run that is still short can say of a tail quantile, by the binomial test of
// how many of its samples were over a bound (MLPerf inference rules, on early stopping; LoadGen's
// early_stopping.cc with a tolerance of 0). Pure functions over numbers; p, of which 0.99 is p99, and
// confidence are in (0, 1). Quick for n up to 10^7 and more.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::stats {

enum class Answer { kYes, kNo, kUndecided };

// Whether the p-quantile lies below a bound, when `over` of n independent samples were over it. kYes where
// the binomial test rejects at 1 - confidence that samples are over it with a probability of 1 - p or more,
// kNo where it rejects that they are with 1 - p or less.
Answer QuantileIsBelow(double p, int64_t n, int64_t over, double confidence = 0.99);

// The fewest samples for which QuantileIsBelow says kYes with that many over the bound.
int64_t QueriesNeeded(double p, int64_t over, double confidence = 0.99);

// The rank, from 1, of the least order statistic of n that is an upper confidence bound of the p-quantile:
// n - t, with t the most samples over that QueriesNeeded grants n. Nothing where it grants not even none: for
// p90 below 44, for p99 below 459. LoadGen reports one rank more, n - t + 1 with t at least 1,
// and so nothing for p90 below 64, for p99 below 662.
std::optional<int64_t> EstimateRank(double p, int64_t n, double confidence = 0.99);

}  // namespace weir::stats
