// A model's graph with another float type in the place of FP32.
#pragma once

#include <string>

#include "base/error.h"

namespace weir::onnx {

enum class ReducedFloat { kFp16, kBf16 };

// Returns the model of the file at `path`, as the bytes of an ONNX file, computing in `type` from its first
// node to its last: weights are rounded to the nearest value (those beyond FP16's range to its greatest), and
// its inputs and outputs stay as they are, with conversions behind and before them. Parameters that operators
// want as FP32, such as the scales of a resize, stay so. kUnsupported for quantised models, for control flow,
// and for weights in files of their own; otherwise the errors of ReadFacts.
Result<std::string> ReducePrecision(const std::string& path, ReducedFloat type);

}  // namespace weir::onnx
