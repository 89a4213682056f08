// The findings of `weir load --validate`: typed result and text.
#pragma once

#include <string>
#include <vector>

#include "load/validate/validate.h"
#include "results/check_results.h"

namespace weir::load {

results::ValidateResult MakeValidateResult(const std::vector<Finding>& findings);

// Returns a line for each finding, and whether `file` keeps the rules.
std::string ValidateText(const results::ValidateResult& result, const std::string& file);

}  // namespace weir::load
