// The names of the verdict in this namespace.
#pragma once

#include "results/verdict.h"

namespace weir::record {

using results::Cause;
using results::Reason;
using results::Standing;
using results::ToString;
using results::Verdict;

}  // namespace weir::record
