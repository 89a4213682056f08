// Several tests that one reader looks at together. Pure functions over numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::stats {

// Returns each p-value adjusted by Holm's step-down method (Holm 1979): an adjusted value at or below alpha
// is significant, and the chance of any false finding in the family is at most alpha, however the tests
// depend on each other. In the order given. REQUIRES: each p is in [0, 1].
std::vector<double> HolmAdjust(std::span<const double> p_values);

// Returns the confidence at which each of `count` intervals must be made so that all of them together hold
// what they are of with `confidence`, however they depend on each other (Bonferroni). A test at the level
// (1 - confidence) / count finds a difference where such an interval leaves it out, and nowhere else.
double SimultaneousConfidence(double confidence, size_t count);

// Returns a p-value for that test: at or below 1 - confidence where the simultaneous interval leaves the
// hypothesis out.
double SimultaneousP(double p, size_t count);

// Returns the two-sided p-value of Student's t with that many degrees of freedom. REQUIRES: degrees > 0.
double StudentP(double t, double degrees);

// Returns the two-sided p-value of the hypothesis that the mean of the log ratios is 0. 1 below two values
// and where all are 0; 0 where all are equal and not 0. REQUIRES: all are finite.
double PairedP(std::span<const double> log_ratios);

// Returns the largest relative difference that an interval of a ratio does not exclude: 0.021 for (0.987,
// 1.021). A difference is counted as a factor, so 0.98 counts as 1/0.98 - 1. REQUIRES: 0 < low <= high.
double DifferenceLimit(double low, double high);

}  // namespace weir::stats
