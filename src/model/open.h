// OpenModel, with what the file says of itself.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "model/model.h"
#include "onnx/graph.h"

namespace weir::model {

struct ModelAndFacts {
  Model model;
  std::optional<onnx::GraphFacts> facts;  // absent where there is no file
};
Result<ModelAndFacts> OpenWithFacts(const std::string& path, const OpenOptions& options);

}  // namespace weir::model
