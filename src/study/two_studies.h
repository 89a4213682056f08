// Two studies beside each other: the same configurations on another host, build or day. Pure.
#pragma once

#include "base/json.h"
#include "study/result_json.h"

namespace weir::study {

// {"metric", "differences": what was not the same (host, build, study file), "configurations": [{"label",
// "before", "now", "ratio", "low", "high", "told"}], "only_before": [labels], "only_now": [labels]}.
// Configurations are the same where all their levels are. Of the objective of `now`. The studies share no
// blocks, so the ratio is of two samples (stats::UnpairedRatio), and what differs between the two days or
// hosts is in it.
Json CompareStudies(const ResultInputs& before, const ResultInputs& now);

}  // namespace weir::study
