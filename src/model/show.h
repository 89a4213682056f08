// The facts that `weir model show` prints.
#pragma once

#include <string>

#include "base/error.h"
#include "results/model_result.h"

namespace weir::model {

// Returns the facts of a model. Errors as OpenModel.
Result<results::ModelFacts> DescribeModel(const std::string& path);

}  // namespace weir::model
