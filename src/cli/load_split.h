// Prints the parts of a level's response time.
#pragma once

#include <string>

#include "load/session/level_split.h"

namespace weir::cli {

std::string SplitText(const load::LevelResult& level, double percentile);

}  // namespace weir::cli
