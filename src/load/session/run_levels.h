// Plays the levels of a load one after the other, or searches for the largest rate. Decides which level comes
// next and when to end; the caller plays. Pure apart from the calls it is given. One thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "base/seed.h"
#include "load/session/level.h"
#include "load/session/level_result.h"
#include "load/session/options.h"
#include "load/session/peak_search.h"
#include "load/session/session_requests.h"

namespace weir::load {

struct RunLevelsHooks {
  // Plays one level; see LoadSession::PlayLevel.
  std::function<Result<LevelResult>(const Level& level, const LevelLength& length, int number, Seed seed)>
      play;
  std::function<void(const LevelResult& level)> played;  // a level is over. Empty: not called
  NoteSink note;                                         // empty: not called
};

struct LevelsOutcome {
  std::vector<LevelResult> levels;          // in the order in which they were played
  std::optional<PeakSearch::Outcome> peak;  // of a search that ended
  bool peak_spoiled =
      false;  // the generator or the machine spoiled the runs of a rate, which ended the search
};

// Plays the levels in order, until one is not below the latency threshold. `mlperf`: the rules that each
// level is held against; nullopt: none. Errors are `play`'s. Results so far are in `outcome`, also after an
// error.
Status PlayLevels(const LoadOptions& options, const std::vector<Level>& levels, const LevelLength& length,
                  const std::optional<MlperfLevel>& mlperf, const RunLevelsHooks& hooks,
                  const std::stop_token& stop, LevelsOutcome& outcome);

// Searches for the largest rate at which the judged percentile stays below the latency threshold, from the
// rate of `first`. A run that the generator or the machine spoiled is repeated, three times in all; then the
// search ends. REQUIRES: `first` is a rate, not a trace. Otherwise as PlayLevels.
Status FindPeak(const LoadOptions& options, const Level& first, const LevelLength& length,
                const RunLevelsHooks& hooks, const std::stop_token& stop, LevelsOutcome& outcome);

// Returns whether the claim asked for is valid, and its target met. A search: it found a confirmed rate.
// Else: some level is below the latency threshold, if there is one, and no level's claim is INVALID. The
// claim is the latency's for a threshold or a rate, else the throughput's. False without any level.
bool MeetsClaim(const LoadOptions& options, const LevelsOutcome& outcome);

}  // namespace weir::load
