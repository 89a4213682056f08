// Phases side by side (the factor `beside`): the share of its rate that each keeps, and under which limits.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/comparison.h"
#include "study/design.h"
#include "study/measured.h"

namespace weir::study {

// One phase with all others beside it, over the same phase alone: `configuration` over `against`.
struct PhaseKept : Comparison {
  std::string phase;               // "serve", "feed", "prepare"
  std::string limits;              // the level's words
  double alone = 0, together = 0;  // means
};

struct PhaseTable {
  std::vector<PhaseKept> kept;  // one family: figures of every phase under each level of `limits`
  // The limits under which the phase that loses most keeps most. Empty with one level of limits, or where no
  // pair of levels differs significantly.
  std::string recommended;
  double least_kept = 0;  // there, by the phase that loses most
  std::string why_not;    // why none is recommended
};

// Returns nullopt if the study has no configuration with phases beside the client. A phase is alone where
// nothing of the others runs and no limits are set: serve without a phase beside it; feed and prepare beside
// a client with the lightest load that the study has for them (load: {rate_per_s: 1}), else the usual one.
std::optional<PhaseTable> ComparePhases(const Design& design, const Measured& measured,
                                        const AnalysisOptions& options);

}  // namespace weir::study
