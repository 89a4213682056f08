// The limits behind verdicts of the storage probe, beside those of results/thresholds.h, which it shares.
// docs/reference/verdicts.md lists them for users. A share is from 0 to 1.
#pragma once

#include <cstdint>

#include "results/thresholds.h"

namespace weir::results::threshold {

// Bytes of a cold run that were in the page cache before they were read. A hit costs next to no time, so the
// rate is at most this much too high.
inline constexpr double kCachedShare = 0.01;
// Use of the rate that the harness itself reaches from memory. As kGeneratorBusyInvalid.
inline constexpr double kHarnessShare = 0.8;
// Steps of a training run. The first is not counted; with fewer steps each late one weighs over 5 %.
inline constexpr int64_t kFewestSteps = 20;

}  // namespace weir::results::threshold
