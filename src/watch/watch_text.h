// The result of a watch as lines for people. Pure.
#pragma once

#include <string>

#include "base/text_style.h"
#include "results/watch_result.h"

namespace weir::watch {

// Returns the frames, the latency by stage, the faults of each stream and the bottleneck.
std::string WatchText(const TextStyle& style, const results::WatchResult& result);

}  // namespace weir::watch
