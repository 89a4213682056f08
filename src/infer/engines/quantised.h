// Whether a model file computes with integers.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::infer {

// True when `onnx`, the bytes of an ONNX file, has quantised operators. Their names are looked for as the
// format writes them (protobuf: NodeProto.op_type is field 4), not by reading the graph: some 50 ms for 100
// MB.
bool HasQuantisedOperators(std::string_view onnx);

// `precision()` of a model file on an engine that does its float part in `arithmetic` ("f32"): engines run
// the quantised operators in int8 where they can, which is the model's choice and not a change of precision.
// The errors of ReadFile, for files of up to 2 GiB: protobuf ends there, larger models keep their weights
// outside.
Result<std::string> PrecisionInForce(const std::string& path, const std::string& arithmetic);

}  // namespace weir::infer
