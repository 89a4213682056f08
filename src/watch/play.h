// A watch from its request to its result: outputs, models, the watch or the search, the end.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/server_watch.h"
#include "results/watch_result.h"
#include "watch/request.h"

namespace weir::watch {

// Receives what the person at the terminal should see, on the thread that plays.
struct PlayHooks {
  std::function<void(const std::string&)> note;
  std::function<void(double elapsed_s, int64_t done, int64_t total, const std::string& extra)> progress;
  std::function<void()> progress_ended;
};

// Plays the watch. Blocks. The result has neither provenance nor command. Errors are those of
// CompleteRequest, of the outputs, of the models, and of WatchStreams.
Result<results::WatchResult> PlayWatch(const WatchRequest& request, const monitor::ServerAccess& access,
                                       const PlayHooks& hooks, const Clock& clock,
                                       const std::stop_token& stop);

// Whether enough frames were answered in time, and a search found a number of streams.
bool MeetsClaim(const WatchRequest& request, const results::WatchResult& result);

}  // namespace weir::watch
