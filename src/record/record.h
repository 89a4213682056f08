// The name of a trial's result in this namespace.
#pragma once

#include "record/verdict.h"
#include "results/trial_result.h"

namespace weir::record {

using Record = results::TrialResult;

}  // namespace weir::record
