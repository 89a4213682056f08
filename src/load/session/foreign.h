// The flags that perf_analyzer has and `weir load` lacks.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace weir::load {

// Returns kInvalidArgument for the first such flag, with the one that does its work here.
Status CheckForeign(const std::vector<std::string>& arguments);

}  // namespace weir::load
