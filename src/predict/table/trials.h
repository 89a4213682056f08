// The SPEC that the factors of a study make.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::predict {

// Returns a SPEC that predicts the time of an image from the study's factors: a constant, each numeric factor
// and its inverse as terms, and the other factors as categories. Factors with one level are left out. Returns
// kInvalidArgument if no factor has two levels, or no trial has a throughput.
Result<std::string> SpecOfTrials(std::string_view journal, const std::string& name);

}  // namespace weir::predict
