// The result of a small study, as `weir study` writes it.
#pragma once

#include "results/study_result.h"

namespace weir::report {

// Two configurations, two blocks; the second has a SUSPECT trial, and names that would be markup if nobody
// escaped them.
results::StudyResult SmallResult();

}  // namespace weir::report
