// Plays a search over the configurations of a study file. What a trial does is the caller's.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "advise/goal.h"
#include "advise/search.h"
#include "advise/search_trials.h"
#include "base/error.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/run.h"

namespace weir::advise {

struct SearchProgress {
  Phase phase = Phase::kScreening;
  int64_t trials = 0;  // played so far
  std::string label;   // of the configuration just played
};

struct SearchInputs {
  const study::Design& design;
  const Goal& goal;
  study::TrialFn play;
  SearchTrials& trials;
  std::function<void(const SearchProgress&)> progress;  // may be empty
  std::stop_token stop;
  SearchOptions options;
};

struct SearchRun {
  std::vector<study::PlayedTrials> exploration;  // of screening and region: they chose, and are not judged by
  std::vector<study::PlayedTrials> confirmation;  // fresh, in blocks: what Decide reads
  std::optional<SearchAnswer> answer;             // absent where the search was stopped
};

// Blocks the caller; `play` runs on its thread. A trial that fails, is skipped or misses a target counts as
// one that misses. kInvalidArgument where the objective is the cost and a configuration has no price; other
// errors are the journal's.
Result<SearchRun> RunSearch(const SearchInputs& inputs);

// The index of each configuration's level in every factor that differs between configurations; absent levels
// have an index of their own. In the order of the design.
std::vector<Point> PointsOf(const study::Design& design);

}  // namespace weir::advise
