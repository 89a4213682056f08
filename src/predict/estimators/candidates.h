// The candidates of the mixture.
#pragma once

#include <string_view>
#include <vector>

#include "predict/estimators/estimator.h"
#include "predict/validation/splits.h"

namespace weir::predict {

// Whether the fit has rows of the physical model's groups that the split leaves out. If not, weights of each
// group would leave the corrections nothing to learn.
enum class Groups { kOwn, kCommon };

// Returns the candidates for a split of so many rows that belong to `estimator`: "auto" for all but linear
// regression, or one kind. The caller tunes the kernel of neighbours.
std::vector<Recipe> Candidates(Split split, size_t rows, Groups groups, std::string_view estimator);

}  // namespace weir::predict
