// Results of the commands of an index, for people and programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text_style.h"
#include "identity/evaluate.h"
#include "identity/index.h"
#include "results/identities_result.h"

namespace weir::identity {

results::IdentitiesResult::Index MakeResult(const IndexFacts& facts);
// Returns the part of an evaluation at this threshold.
results::IdentitiesResult MakeResult(const Evaluation& evaluation, double threshold);
// Returns the quantiles that so many look-ups support, in microseconds.
results::IdentitiesResult::Latency LatencyOf(std::vector<double> us);

// Lines for people.
std::string IndexText(const results::IdentitiesResult::Index& index);
std::string EvaluationText(const TextStyle& style, const results::IdentitiesResult& result);

}  // namespace weir::identity
