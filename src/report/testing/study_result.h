// The result of a small study, as study/result_json.h writes it.
#pragma once

#include "base/json.h"

namespace weir::report {

// Two configurations, two blocks; the second has a SUSPECT trial, and names that would be markup if nobody
// escaped them.
Json SmallResult();

}  // namespace weir::report
