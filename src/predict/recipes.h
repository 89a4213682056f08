// The candidates.
#pragma once

#include <string_view>
#include <vector>

#include "predict/estimator.h"

namespace weir::predict {

// The pull of the physical model (Physical::Options) that neighbours correct.
Physical::Options NeighboursBase();

// Every candidate for one question, whose neighbours use this likeness.
std::vector<Recipe> Candidates(const Likeness& likeness, size_t rows);

// Whether a candidate belongs to what the user calls by this name ("auto": all but the second work's).
bool BelongsTo(const Recipe& recipe, std::string_view name);

}  // namespace weir::predict
