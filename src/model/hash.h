// The hash that ties data to the model that made it.
#pragma once

#include <string>

#include "base/error.h"
#include "model/model.h"

namespace weir::model {

// Returns a hash of the model's file (XXH3-128, 32 hex digits), or of its name where it has no file. kIo.
Result<std::string> HashOfModel(const Model& model);
// The same for an .onnx file or a model folder. Errors as OpenModel.
Result<std::string> HashOfModel(const std::string& path);

}  // namespace weir::model
