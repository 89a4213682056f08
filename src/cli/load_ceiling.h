// What the load generator can do at most, and the least time it tells of: measured against a server that does
// nothing.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/load_flags.h"
#include "cli/load_target.h"
#include "infer/call.h"

namespace weir::cli {

struct Ceiling {
  double per_s = 0;                // requests, were its busiest thread busy all the time
  std::optional<double> floor_ms;  // the median response time of one request at a time
};

// Sends `requests`, made for `target`, to a NullServer for some hundredths of a second, over the target's
// protocol and with the client that `flags` ask for. Errors are those of starting it, or say that nothing
// came of it.
Result<Ceiling> MeasureCeiling(const LoadFlags& flags, const LoadTarget& target,
                               const std::vector<infer::Request>& requests, const Clock& clock,
                               const std::stop_token& stop);

}  // namespace weir::cli
