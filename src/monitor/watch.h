// Watches processes that run already.
#pragma once

#include <stop_token>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/resources.h"

namespace weir::monitor {

// Watches the trees of `options.processes` until all of these have ended or `stop` is asked for, and says
// what they used meanwhile. The processes are not touched. kInvalidArgument where none is named, kNotFound
// where one is not there, kIo where the kernel cannot tell of their end (before Linux 5.3).
Result<Resources> WatchUntilTheyEnd(const Clock& clock, const ResourceMonitor::Options& options,
                                    const std::stop_token& stop);

}  // namespace weir::monitor
