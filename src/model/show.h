// The facts that `weir model show` prints.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"

namespace weir::model {

// The facts of a model: inputs[], outputs[] {name, datatype, shape (-1: free)}, parameters,
// multiply_adds_per_item, activations_per_item, inner_modules, depth, batchable (and not_batchable: why),
// opset, file_bytes, and what else is known. Figures that the graph does not settle are absent. Errors as
// OpenModel.
Result<Json> DescribeModel(const std::string& path);

}  // namespace weir::model
