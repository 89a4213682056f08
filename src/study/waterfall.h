// Where the time goes: from tensors in memory in one process to the full architecture, one factor at a time.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "stats/summary.h"
#include "study/comparison.h"
#include "study/design.h"
#include "study/measured.h"
#include "study/study_file.h"

namespace weir::study {

// Returns the combinations of the waterfall in their order, each with the name of what it adds to the one
// before. The last one is the target: the base with the levels of `waterfall`, else with the farthest
// architecture of the study. kInvalidArgument where the load is a rate: an open loop has no time of its own.
struct WaterfallCombination {
  std::string name;    // "decode"
  std::string change;  // "data path files-at-model-size to files"; empty for the first
  Json factors;
};
Result<std::vector<WaterfallCombination>> WaterfallCombinations(const StudyFile& study);

// Milliseconds for a picture. A difference is that of the same blocks.
struct WaterfallStep {
  std::string name, change;
  size_t configuration = 0;
  int64_t blocks = 0;
  double total = 0;                     // mean time up to this step
  std::optional<stats::Summary> whole;  // that time by itself, with its own interval; absent by events
  // For the differences to the step before; of the first its own time. The intervals of all differences, and
  // of what all of them add, are simultaneous.
  std::optional<stats::Summary> step;
  // Whether it is a part of the first trial's time by the events of an accelerator. It is no comparison, and
  // has no p.
  bool by_events = false;
  double p = 1, adjusted_p = 1;  // of no difference; adjusted as the intervals are
};

struct Waterfall {
  std::vector<WaterfallStep> steps;     // over the blocks in which every step counts
  std::optional<stats::Summary> added;  // the last step's time less the first combination's
  std::vector<std::string> missing;     // planned steps without a trial that counts: parts of the next one
  std::string left_out;                 // why there is none; empty with one
};

// Returns nullopt if the study asks for no waterfall.
std::optional<Waterfall> FindWaterfall(const Design& design, const Measured& measured,
                                       const AnalysisOptions& options);

}  // namespace weir::study
