// A model is untrusted data: what must not reach an engine.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "onnx/proto.h"

namespace weir::onnx {

// Checks every tensor, node and function of the model, at any depth. `folder` is the model's own, links
// followed; empty: no external data is allowed. Gives the bytes of the external files, each counted once.
// kInvalidArgument names the tensor or the node that is refused; kCorrupt one that contradicts itself.
Result<uint64_t> CheckSafe(const pb::ModelProto& model, const std::string& folder);

}  // namespace weir::onnx
