// The configuration that a study's trials support for a goal, or why they support none. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "advise/goal.h"
#include "base/json.h"
#include "base/text_style.h"
#include "results/advice_result.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/measured.h"

namespace weir::advise {

// The names by which a configuration can be priced: its accelerator's, and its architecture.
std::vector<std::string> PricedNames(const Json& factors);

// Returns the price of one instance's hour: by its accelerator's name, else by its architecture; nullopt
// without one.
std::optional<double> PriceOf(const Json& factors, const Goal& goal);

using Expected = results::AdviceResult::Expected;

enum class Standing { kMeets, kMisses, kUndecided, kNotMeasured, kDisturbed };
std::string_view ToString(Standing standing);  // "meets", "misses", "undecided", "not measured", "disturbed"

// One configuration against the goal.
struct Candidate {
  size_t configuration = 0;
  Standing standing = Standing::kMeets;
  std::string why;  // the target, or the share of trials, that decides
  Expected throughput;
  std::optional<Expected> p99_ms, memory_bytes;
  std::optional<int64_t> instances;  // that answer the rate, by the lower end of the throughput
  std::optional<double> cost_per_hour, cost_per_million_images;
};

// A configuration with a predicted accelerator, and the same with the fast and the slow end of the
// prediction's interval. The ends are no candidates: they widen the intervals of the middle.
struct PredictedEnds {
  size_t middle = 0, fast = 0, slow = 0;  // configurations of the design
};

struct Decision {
  std::vector<Candidate> candidates;      // in the order of the design; those that were measured
  std::optional<size_t> best, runner_up;  // indices of `candidates`
  bool significant = false;  // best against runner-up: by the interval below, and by nothing else
  std::optional<double> adjusted_p;
  // The ratio of the objective, best over runner-up: simultaneous over all that meet the goal.
  std::optional<double> difference_low, difference_high;
  std::string bottleneck;          // of most of the best's trials; may be empty
  std::string no_answer;           // why there is no best; empty with one
  std::vector<std::string> notes;  // what limits the answer
  std::vector<std::string> measure_next;
};

// Ranks the configurations whose trials are VALID for the most part and meet every target with the whole
// interval of the mean. Compares them with the best by the paired log ratios of their objective in shared
// blocks, by simultaneous intervals. Where real engines and emulated ones were both measured, only the real
// ones are ranked. With `ends` every interval holds both uncertainties: that of the trials and, in quadrature
// on the logarithms, that of the prediction.
Decision Decide(const study::Design& design, std::span<const study::PlayedTrials> played, const Goal& goal,
                std::span<const PredictedEnds> ends = {});

// Returns the mean over the trials of a configuration with its interval, widened to the ends where it has
// any; nullopt without trials.
std::optional<Expected> ExpectedOf(const study::Measured& measured, std::span<const PredictedEnds> ends,
                                   size_t configuration, const std::string& metric);

// Returns what advice.json holds, without the search and the files.
results::AdviceResult MakeAdvice(const Decision& decision, const study::Design& design, const Goal& goal);

// Returns lines for people: the best configuration, the runner-up, notes, and what to measure next.
std::string AdviceText(const TextStyle& style, const results::AdviceResult& advice);

}  // namespace weir::advise
