// The result of a fit as a document: how well each candidate predicts the times of each group.
#pragma once

#include "report/document.h"
#include "results/fit_result.h"

namespace weir::report {

// REQUIRES: of a fit, not of a check. Values that it may lack (groups, a learning curve) are left out of the
// document.
Document FitDocument(const results::FitResult& fit);

}  // namespace weir::report
