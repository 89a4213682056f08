// Two things measured side by side in the same blocks, and how far they are apart. Pure functions over
// numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace weir::stats {

struct Ratio {
  int64_t n = 0;                        // pairs
  double ratio = 0;                     // the geometric mean of the pairs' ratios
  std::optional<double> low, high;      // Student's interval of it; nothing for a single pair
  std::optional<double> log_deviation;  // of the logarithms of the pairs' ratios, divided by n - 1
  // For the logarithm of `ratio`: its standard error and the degrees of freedom of that; nothing without an
  // interval.
  std::optional<double> log_error;
  double degrees = 0;
};

// Sets the interval of a ratio that has one to that of another confidence, in (0, 1).
void SetConfidence(double confidence, Ratio& ratio);
// Returns the two-sided p-value of the hypothesis that the ratio is 1, by the same t as the interval, so that
// p is above 1 - confidence where the interval holds 1. 1 without an interval.
double RatioP(const Ratio& ratio);

// Divides values[i] by references[i], block for block, so that conditions that a block has in common (the
// hour, the neighbours) falls out. The mean and its t interval are of the logarithms and carried back by exp,
// as times and rates vary by factors (Box, Hunter and Hunter, Statistics for Experimenters, 2005, chapters 3
// and 4). Nothing without pairs, where the lengths differ, or where one value is not finite and above 0.
// confidence is in (0, 1).
std::optional<Ratio> PairedRatio(std::span<const double> values, std::span<const double> references,
                                 double confidence = 0.95);

// The same of logarithms that are already there.
std::optional<Ratio> RatioOfLogs(std::span<const double> log_ratios, double confidence = 0.95);

// For two samples that share no blocks: the ratio of their geometric means, with Welch's interval of the
// difference of the logarithms' means (Welch 1947; degrees of freedom by Satterthwaite 1946, not rounded). n
// is the smaller sample's; no log_deviation. No interval where a sample has one value only, or none varies.
// Nothing where one is empty, or a value is not finite and above 0.
std::optional<Ratio> UnpairedRatio(std::span<const double> values, std::span<const double> references,
                                   double confidence = 0.95);

// The smallest true mean of n differences with this standard deviation that a two-sided t test at level alpha
// finds with probability `power`: (t[1 - alpha/2, n - 1] + t[power, n - 1]) deviation / sqrt(n), the minimum
// detectable difference of Zar, Biostatistical Analysis, 2010, chapter 7, of paired differences as in
// chapter 9. In the unit of the deviation; of log ratios, exp of it less 1 is the smallest relative
// difference. Nothing for n below 2. alpha is in (0, 1), power in (0.5, 1).
std::optional<double> SmallestDifference(double deviation, int64_t n, double alpha = 0.05,
                                         double power = 0.8);

}  // namespace weir::stats
