// The bottleneck of each configuration, the part that holds back next, and the gain before it does. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stats/paired.h"
#include "study/comparison.h"
#include "study/measured.h"

namespace weir::study {

struct NextBottleneck {
  std::string stage;                 // the commonest of the trials' bottlenecks
  int64_t times = 0, of = 0;         // trials
  std::optional<double> bound;       // images/s at which it holds back, mean over the trials
  std::string next;                  // the commonest next one, over the trials that name the first
  std::optional<double> next_bound;  // images/s that it allows with the first gone, mean over the trials
  // How many times the rate the relief of the first gives at most: the next bound over the rate. Absent where
  // one of those trials does not know the next bound.
  std::optional<stats::Ratio> gain;
  std::string contradiction;  // of a trial whose bounds say that another part holds back; empty: none
};

// Returns nullopt if no trial of the configuration names a bottleneck. From the metrics `bottleneck` and
// `bound_images_per_s` of its trials (docs/results.md).
std::optional<NextBottleneck> FindNextBottleneck(size_t configuration, const Measured& measured,
                                                 const AnalysisOptions& options);

}  // namespace weir::study
