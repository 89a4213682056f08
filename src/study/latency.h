// The response times of a study's trials: percentiles over the trials, and their distribution over all
// requests. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "results/study_result.h"
#include "study/analysis.h"
#include "study/design.h"
#include "study/measured.h"

namespace weir::study {

// Requests by LoadResult's bucket.
using ResponseCounts = std::map<int64_t, int64_t>;

// Adds up the requests of the configuration's trials that count, references left out.
ResponseCounts MergeResponses(const Measured& measured, size_t configuration);

// Returns the time, ms, below which this share of the requests lies: within 2.2 %, as wide as a bucket. 0
// without requests. share is in (0, 1].
double TimeAt(const ResponseCounts& counts, double share);

// Draws the best configurations, the best first: percentiles with the intervals of their means over the
// trials, and the distribution of the requests of all trials. Empty where nothing measured response times.
std::vector<results::ChartData> DrawLatency(const Design& design, const Analysis& analysis,
                                            const Measured& measured);

}  // namespace weir::study
