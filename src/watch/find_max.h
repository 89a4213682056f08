// The largest number of streams that hold a deadline. Pure: the trials are the caller's.
#pragma once

#include <cstdint>
#include <functional>

#include "base/error.h"
#include "results/watch_result.h"

namespace weir::watch {

struct FindMaxOptions {
  int64_t most = 256;         // streams at which the search ends
  int confirmations = 5;      // runs at the number found that must all hold
  double least_percent = 99;  // of the captured frames answered in time, for a run to hold
};

// Plays one trial with so many streams. An error ends the search.
using PlayTrial = std::function<Result<results::WatchResult>(int64_t streams)>;

// Doubles the number until a trial does not hold, bisects, then confirms: one trial that fails there lowers
// the number by one, and the confirmations begin again (MLPerf inference v0.5, MultiStream, confirms five
// times).
Result<results::WatchResult::FindMax> FindMaxStreams(const FindMaxOptions& options, const PlayTrial& play);

}  // namespace weir::watch
