// Ports that nobody listens on.
#pragma once

#include <vector>

#include "base/error.h"

namespace weir::launch {

// As many TCP ports of this machine, each another, that were free a moment ago. Another program may take one
// before the caller does: then the server that was given it says so and ends.
Result<std::vector<int>> FreePorts(int count);

}  // namespace weir::launch
