// The drift of the reference configuration while the study lasted. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stats/line.h"
#include "stats/steady_state.h"
#include "study/comparison.h"
#include "study/entries.h"
#include "study/measured.h"

namespace weir::study {

// A block whose reference trials lie off the middle of all blocks.
struct RestlessBlock {
  int block = 0;
  double ratio = 1;      // to the median of the blocks
  std::string evidence;  // the commonest reason of the block's trials: "foreign-cpu in 12 of 15 trials";
                         // empty where none was recorded
};

// Relative figures.
struct StudyDrift {
  std::string metric;
  int64_t blocks = 0;  // with at least one reference trial that counts
  std::optional<double> change, low,
      high;                     // from the first block to the last, by a line through the blocks' means
  bool shown = false;           // the interval excludes 0, and the change is above the margin
  std::optional<double> limit;  // where it is not shown: the largest change that the interval leaves open
  std::optional<stats::Ratio> within_block;  // at a block's end over its start
  std::optional<stats::Trend> trend;         // over the blocks
  std::vector<RestlessBlock> restless;
  bool flagged = false;  // shown, or some block is restless
};

// A block is restless if its mean is off the median of the blocks by more than the margin and by more than
// 3.5 robust standard deviations (1.4826 times the median absolute deviation; Iglewicz and Hoaglin 1993).
StudyDrift FindStudyDrift(const Measured& measured, std::span<const PlayedTrials> played,
                          const std::string& metric, const AnalysisOptions& options);

}  // namespace weir::study
