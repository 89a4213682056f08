// The bottleneck of each configuration, the part that holds back next, and the gain before it does. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stats/paired.h"
#include "study/comparison.h"
#include "study/design.h"
#include "study/measured.h"

namespace weir::study {

struct NextBottleneck {
  std::string stage;                 // the commonest of the trials' bottlenecks
  int64_t times = 0, of = 0;         // trials
  std::optional<double> bound;       // images/s that it would reach alone, mean over the trials
  std::string next;                  // the part with the next bound; empty where no other is known
  std::optional<double> next_bound;  // images/s, mean over the trials
  // How many times the rate the relief of the first gives at most before the second holds back: in async mode
  // the next bound over the rate; in sync mode, where times add up, the time without the first part.
  std::optional<stats::Ratio> gain;
};

// Returns nullopt if no trial of the configuration names a bottleneck. From the metrics `bottleneck`,
// `bound_images_per_s` and `link` of its trials (docs/results.md).
std::optional<NextBottleneck> FindNextBottleneck(const Configuration& configuration, size_t index,
                                                 const Measured& measured, const AnalysisOptions& options);

}  // namespace weir::study
