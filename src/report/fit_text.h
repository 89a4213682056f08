// The result of a fit, or of a check of rows, for a terminal.
#pragma once

#include <string>

#include "results/fit_result.h"

namespace weir::report {

// Returns how many rows there were, the first finding of each kind, and the scores of a fit by split.
std::string FitText(const results::FitResult& fit);

// Returns a table of the scores of several fits by split; empty for one SPEC, for checks and without a fit.
std::string FitsText(const results::FitsResult& fits);

}  // namespace weir::report
