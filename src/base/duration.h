// Durations as people write them on a command line and in specifications.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace weir {

// Returns the duration of "180us", "+250us", "1.5ms", "2s", "10m", "1h" or "0". kInvalidArgument names the
// text, if it is another one or above `most`.
Result<Duration> ParseDuration(std::string_view text, Duration most = Duration::max());

}  // namespace weir
