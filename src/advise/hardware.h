// Predicted accelerators in front of the measured data path: which of them it can feed, and which is worth
// its price.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "advise/decision.h"
#include "advise/goal.h"
#include "advise/run_search.h"
#include "advise/search_trials.h"
#include "base/error.h"
#include "results/advice_result.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/study_file.h"

namespace weir::advise {

// An accelerator as a predictor describes it.
struct Accelerator {
  // Takes base + per_item x batch for a batch, as an emulated engine.
  struct Engine {
    std::string text;  // "emulated:base=1.2ms,per_item=0.34ms,batch=32"
    double base_ms = 0, per_item_ms = 0;

    double ImagesPerSecond(double batch) const { return 1000 * batch / (base_ms + per_item_ms * batch); }
  };
  std::string name;
  Engine middle, fast, slow;  // the prediction, and the ends of its interval
  std::string outside;        // why it lies outside the predictor's data; empty: inside
  std::optional<double> price_per_hour;
};

struct HardwareInputs {
  const study::StudyFile& file;  // its engine and accelerator are replaced
  const Goal& goal;
  const std::vector<Accelerator>& accelerators;
  // Returns the function that plays the trials of a design. Both must outlive the function's last call.
  std::function<study::TrialFn(const study::StudyFile&, const study::Design&)> player;
  SearchTrials& trials;
  std::function<void(const SearchProgress&)> progress;  // may be empty
  std::stop_token stop;
};

struct HardwareRun {
  study::Design design;  // the best configuration of each accelerator, with the prediction and its two ends
  std::vector<PredictedEnds> ends;  // of each accelerator, in their order
  std::vector<study::PlayedTrials> played;
  Goal goal;  // with the accelerators' prices
  int64_t search_trials = 0, full_factorial_trials = 0;
  bool stopped = false;  // before its end; the rest is then of no use
};

// Searches the best configuration of each accelerator; then plays these again, in shuffled blocks, each with
// the prediction and with both ends of its interval. Blocks the caller. kInvalidArgument where a
// configuration has no place for an accelerator, such as one of another server; other errors are the
// journal's.
Result<HardwareRun> RunHardware(const HardwareInputs& inputs);

// Returns a finding for each accelerator, in their order. An accelerator is fed if the data path keeps it
// busy for at least 90 % of the time, by the lower end of the share's interval (the threshold of MLPerf
// Storage).
std::vector<results::AdviceResult::Hardware> JudgeHardware(const HardwareRun& run,
                                                           const std::vector<Accelerator>& accelerators,
                                                           const Decision& decision);

// Returns a line for each accelerator, for people.
std::string HardwareText(const std::vector<results::AdviceResult::Hardware>& hardware);

}  // namespace weir::advise
