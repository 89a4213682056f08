// The candidates.
#pragma once

#include <string_view>
#include <vector>

#include "predict/estimator.h"
#include "predict/questions.h"

namespace weir::predict {

// Whether the rows asked for are of groups of the physical model that the fit has rows of. Where they are
// not, each group's own weights would leave nothing for a correction to learn from.
enum class Groups { kOwn, kCommon };

// Every candidate for one question on so many rows. The likeness of neighbours is to be tuned for it.
std::vector<Recipe> Candidates(Question question, size_t rows, Groups groups);

// Whether a candidate belongs to what the user calls by this name: itself, or itself with weights of the
// physical model for each group ("-own") or corrections carried on ("-carried"); "auto": all but the second
// work's.
bool BelongsTo(const Recipe& recipe, std::string_view name);

}  // namespace weir::predict
