// Two studies beside each other: the same configurations on another host, build or day. Pure.
#pragma once

#include "results/study_result.h"
#include "study/result.h"

namespace weir::study {

// Compares the objective of `now`, and lists what was not the same (host, build, study file). Configurations
// are the same if all their levels are. The studies share no blocks, so the ratio is of two samples
// (stats::UnpairedRatio), and what differs between the two days or hosts is in it.
results::StudyResult::Compared CompareStudies(const ResultInputs& before, const ResultInputs& now);

}  // namespace weir::study
