#include "watch/find_max.h"

#include <algorithm>

namespace weir::watch {

using results::WatchResult;

Result<WatchResult::FindMax> FindMaxStreams(const FindMaxOptions& options, const PlayTrial& play) {
  WatchResult::FindMax found;
  int64_t least_failed = options.most + 1;
  const auto holds = [&](int64_t streams, bool confirms) -> Result<bool> {
    const WatchResult result = TRY(play(streams));
    if (result.interrupted) return Fail(ErrorCode::kCancelled, "interrupted");
    WatchResult::Trial trial{.streams = streams,
                             .in_time_percent = result.in_time_percent.value_or(0),
                             .holds = result.in_time_percent.value_or(0) >= options.least_percent,
                             .confirms = confirms,
                             .p99_ms = {},
                             .bottleneck = result.bottleneck};
    if (result.latency_ms) trial.p99_ms = result.latency_ms->p99;
    if (!trial.holds && streams < least_failed) {
      least_failed = streams;
      found.bottleneck = result.bottleneck;
    }
    found.trials.push_back(trial);
    return trial.holds;
  };
  int64_t low = 0, high = 1;  // low holds; high is the next to try
  while (high <= options.most && TRY(holds(high, false))) {
    low = high;
    if (high == options.most) break;
    high = std::min(high * 2, options.most);
  }
  found.limited_by_most = low == options.most;
  high = std::min(high, least_failed);
  while (!found.limited_by_most && high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (TRY(holds(middle, false)) ? low : high) = middle;
  }
  while (low > 0 && found.confirmations < options.confirmations) {
    if (TRY(holds(low, true))) {
      ++found.confirmations;
      continue;
    }
    --low;
    found.confirmations = 0;
    found.limited_by_most = false;
  }
  found.streams = low;
  return found;
}

}  // namespace weir::watch
