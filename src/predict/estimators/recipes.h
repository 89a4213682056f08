// The estimators that a fit may use, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "predict/estimators/estimator.h"
#include "predict/validation/splits.h"

namespace weir::predict {

inline constexpr std::string_view kNeighbours = "neighbours", kPhysical = "physical", kLinear = "lr-sfs",
                                  kLinearRelative = "lr-sfs-relative";

// Whether the fit has rows of the physical model's groups that the split leaves out. If not, weights of each
// group would leave the corrections nothing to learn.
enum class Groups { kOwn, kCommon };

// Returns the names, the default first.
std::vector<std::string> EstimatorNames();

// Returns the recipe for a split, as it is before a kernel is tuned. REQUIRES: one of EstimatorNames.
Recipe RecipeOf(const Spec& spec, std::string_view name, Split split, Groups groups);

}  // namespace weir::predict
