// The load generator's own ceiling: the most requests it can send, and the least time it can report.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/call.h"
#include "load/session/options.h"
#include "load/session/target.h"

namespace weir::load {

struct Ceiling {
  double per_s = 0;                // requests, if its busiest thread were busy all the time
  std::optional<double> floor_ms;  // the median response time of one request at a time
};

// Measures the ceiling against `null`, a target that answers at once, for some hundredths of a second.
// `requests` are not yet prepared. Errors: those of preparing and of playing; kInternal if nothing was
// answered.
Result<Ceiling> MeasureCeilingAgainst(Target& null, const std::vector<infer::Request>& requests,
                                      Concurrency::Wait wait, const Clock& clock,
                                      const std::stop_token& stop);

// Starts a NullServer that stands for `target`'s model, and measures the ceiling against it, over the
// target's protocol and with the client that `options` ask for. Errors are also those of starting it.
Result<Ceiling> MeasureCeiling(const LoadOptions& options, const Target& target,
                               const std::vector<infer::Request>& requests, const Clock& clock,
                               const std::stop_token& stop);

}  // namespace weir::load
