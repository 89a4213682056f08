// The analysis of variance of a linear model with factors, and the checks of its residuals. Pure functions
// over numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"

namespace weir::stats {

// One factor's level of every observation, counted from 0.
using FactorLevels = std::vector<int>;

struct AnovaTerm {
  std::vector<size_t> factors;  // one index: a main effect; two: their interaction
  int64_t degrees = 0;
  double sum_of_squares = 0;
  double f = 0;
  double p = 1;
};

// An observation that the rest of the model does not explain. Flagged, never removed.
struct AnovaOutlier {
  size_t observation = 0;
  double t = 0;  // the residual over its standard error, estimated without this observation
  double p = 1;  // two-sided, times the number of observations (Bonferroni), at most 1
};

struct Anova {
  std::vector<AnovaTerm> terms;  // in the order asked for; a term without degrees of freedom is left out
  int64_t residual_degrees = 0;
  double residual_sum_of_squares = 0;
  std::vector<double> residuals;  // in the order of the observations
  // The p-value of Jarque and Bera (1987): small where the residuals are not normally distributed.
  std::optional<double> normality_p;
  // Durbin and Watson (1950), over the residuals in the order given: near 2 where neighbours are independent,
  // below 2 where they resemble each other.
  std::optional<double> durbin_watson;
  std::vector<AnovaOutlier> outliers;  // with p below 0.05; the smallest p first
};

// Fits y by least squares with an intercept, the factors' main effects and the `interactions` (pairs of
// factor indices), and tests each term with type II sums of squares: the residual sum of squares without the
// term, less that with it, both with all other terms that do not contain it (Fox, Applied Regression
// Analysis, 2016, section 8.2). Cells need not be balanced. Outliers by the externally studentised residuals
// (Cook and Weisberg, Residuals and Influence in Regression, 1982, section 2.2.2). kInvalidArgument where
// lengths differ, a value is not finite, a level is below 0, an interaction names no two factors, or no
// degree of freedom is left for the residuals.
Result<Anova> AnalyseVariance(std::span<const double> y, std::span<const FactorLevels> factors,
                              std::span<const std::pair<size_t, size_t>> interactions);

// A term to which the others leave fewer degrees of freedom than its levels have.
struct AnovaAlias {
  std::vector<size_t> factors;           // as AnovaTerm
  int64_t degrees = 0, own_degrees = 0;  // with all terms in the model that do not contain it, and by itself
  std::vector<size_t> with;              // factors without whose terms it would have more
};

// Returns the aliased terms of the same model. Rows may be those of the observations, or each combination of
// levels once.
std::vector<AnovaAlias> FindAliases(std::span<const FactorLevels> factors,
                                    std::span<const std::pair<size_t, size_t>> interactions);

}  // namespace weir::stats
