// The analysis of variance of a study's objective, and the trials that its model does not explain. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/comparison.h"
#include "study/design.h"
#include "study/effects.h"
#include "study/measured.h"

namespace weir::study {

struct VarianceTerm {
  std::vector<std::string> factors;  // one: a main effect; two: an interaction; "block" is one of them
  int64_t degrees = 0;
  double f = 0, p = 1;
  double adjusted_p = 1;  // by Holm over all terms but the block's
  double share = 0;       // of the sum of squares of all terms and the residuals
};

// A term that cannot be significantly different from others in part or in whole: where a factor is "not
// applicable", that says the same as the factor by which it is not.
struct AliasedTerm {
  std::vector<std::string> factors;
  int64_t degrees = 0, own_degrees = 0;     // with all others in the model, and by its levels
  std::vector<std::string> with;            // the factors that it cannot be told from
  std::vector<std::string> not_applicable;  // those of `factors` and `with` that some configurations lack
};

// The table for the logarithm of the metric, over all trials that count, in the order in which they were
// played.
struct VarianceTable {
  std::string metric;
  int64_t trials = 0;
  std::vector<VarianceTerm> terms;
  std::vector<AliasedTerm> aliased;
  int64_t residual_degrees = 0;
  std::optional<double> residual_deviation;  // relative: exp of the residuals' standard deviation, less 1
  std::optional<double> normality_p, durbin_watson;
  std::string left_out;  // why there is no table; empty with one

  // Returns the pairs of factors whose interaction is significant at `alpha`.
  Interactions Significant(double alpha) const;
};

// Fits main effects of the factors that vary and of the block, and all interactions of two factors. A factor
// that is not applicable to a configuration has a level of its own there.
VarianceTable AnalyseObjective(const Design& design, const Measured& measured, const std::string& metric,
                               const AnalysisOptions& options);

// A trial that configuration and block do not explain. Flagged, never deleted.
struct OutlierTrial {
  size_t configuration = 0;
  int block = 0, position = 0;
  double value = 0;
  double ratio = 1;      // to what its configuration and block predict
  double t = 0, p = 1;   // externally studentised residual; Bonferroni's p over all trials
  std::string evidence;  // of its cause, from the trial's own reasons; empty where none was recorded
};

// Returns the outliers of the additive model of configuration and block. Returns none where the study has
// too many configurations for it (`left_out` says so).
std::vector<OutlierTrial> FindOutlierTrials(const Design& design, const Measured& measured,
                                            const std::string& metric, std::string& left_out);

// Returns "foreign-cpu: others used 0.7 of 2 cores; steal: ..."; empty without reasons.
std::string EvidenceText(const results::Verdict& verdict);

}  // namespace weir::study
