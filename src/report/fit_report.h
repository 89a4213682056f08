// What a fit found, as a document: how well times are predicted, of what, and by which candidate.
#pragma once

#include "base/json.h"
#include "report/document.h"

namespace weir::report {

// REQUIRES: the JSON of predict/job.h (FitJson), with "seed", "estimator" and "command". What it may lack
// (groups, a learning curve) is left out of the document.
Document FitDocument(const Json& fit);

}  // namespace weir::report
