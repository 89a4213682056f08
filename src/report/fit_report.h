// The result of a fit as a document: how well each candidate predicts the times of each group.
#pragma once

#include "base/json.h"
#include "report/document.h"

namespace weir::report {

// REQUIRES: the JSON of predict/job.h (FitJson), with "seed", "estimator" and "command". What it may lack
// (groups, a learning curve) is left out of the document.
Document FitDocument(const Json& fit);

}  // namespace weir::report
