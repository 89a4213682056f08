// Ports that nobody listens on.
#pragma once

#include <vector>

#include "base/error.h"

namespace weir::launch {

// A TCP port of this machine that was free a moment ago. Another program may take it before the caller does:
// then the server that was given it says so and ends.
Result<int> FreePort();
// As many, each another.
Result<std::vector<int>> FreePorts(int count);

}  // namespace weir::launch
