// The rules for what the statistics of a level, its verdict and the claim must be by the other figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/validate/validate.h"
#include "results/load_result.h"

namespace weir::load {

// Adds what breaks the rules kDeviation, kIntervals and kClaim, and what breaks kRuns, kVerdict and kTooFew
// by the figures; `where` is the level's place. Nothing is held against an absent claim.
void CheckStatistics(const results::LoadResult::Level& level,
                     const std::optional<results::LoadResult::Claim>& claim, const std::string& where,
                     std::vector<Finding>& findings);

}  // namespace weir::load
