// Two configurations side by side, and several such comparisons as one family. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stats/paired.h"
#include "study/measured.h"

namespace weir::study {

struct AnalysisOptions {
  double confidence = 0.95;
  double margin = 0.03;              // relative: a smaller gain is no reason to choose
  double alpha = 0.05, power = 0.8;  // of each family of tests; of the smallest difference
};

enum class Told {
  kHigher,   // the interval leaves 1 out, and the ratio is above the margin
  kLower,    // likewise
  kSmall,    // the interval leaves 1 out, but the ratio is not above the margin
  kNothing,  // the interval holds 1: no difference shown
  kTooFew,   // no interval: fewer than two pairs, or too few for so many comparisons
};
std::string_view ToString(
    Told told);  // "higher", "lower", "small difference", "no difference shown", "too few"

// A ratio with its test. Its interval is simultaneous with those of its family, all figures that are compared
// with it, and the finding follows of that interval alone; `adjusted_p` says the same. Before AdjustFamily
// the ratio is alone in its family.
struct Tested {
  stats::Ratio ratio;
  double p = 1, adjusted_p = 1;
  Told told = Told::kTooFew;
  std::optional<double> limit;  // of kNothing: the largest relative difference that the interval leaves open
  std::optional<double> smallest_difference;  // relative, that could have been seen with these blocks
};

// Two configurations, paired in blocks.
struct Comparison : Tested {
  size_t configuration = 0, against = 0;  // the ratio is configuration over against
  std::string metric;
};

// Returns what a test of the mean log ratio says, alone in its family. Returns nullopt without ratios.
std::optional<Tested> TestLogs(std::span<const double> log_ratios, const AnalysisOptions& options);

// Returns log(value of `configuration` / value of `against`) for each block in which both count.
std::vector<double> LogRatios(const Measured& measured, size_t configuration, size_t against,
                              const std::string& metric);

// Returns the comparison, alone in its family. Returns nullopt if the two share no block.
std::optional<Comparison> Compare(const Measured& measured, size_t configuration, size_t against,
                                  const std::string& metric, const AnalysisOptions& options);

// Makes the intervals and p-values of one family simultaneous (Bonferroni), and words each finding anew.
void AdjustFamily(std::span<Tested* const> family, const AnalysisOptions& options);

}  // namespace weir::study
