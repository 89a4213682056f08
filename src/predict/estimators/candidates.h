// The candidates of the mixture.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "predict/estimators/estimator.h"
#include "predict/validation/splits.h"

namespace weir::predict {

// Whether the fit has rows of the physical model's groups that the split leaves out. If not, weights of each
// group would leave the corrections nothing to learn.
enum class Groups { kOwn, kCommon };

// Returns the names of all candidates.
std::vector<std::string> CandidateNames();

// Returns the candidates called `names` for a split of so many rows; all but linear regression if there are
// no names. The caller tunes the kernel of neighbours. REQUIRES: names of CandidateNames.
std::vector<Recipe> Candidates(Split split, size_t rows, Groups groups, std::span<const std::string> names);

}  // namespace weir::predict
