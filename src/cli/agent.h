// `weir agent`.
#pragma once

#include "cli/verbs.h"

namespace weir::cli {

int Agent(const Arguments& arguments);

}  // namespace weir::cli
