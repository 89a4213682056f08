// A model is untrusted data: what must not reach an engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "onnx/proto.h"

namespace weir::onnx {

// Where the files of a model may lie.
struct Places {
  std::string folder;              // the model's own; empty: it may have no external data
  std::vector<std::string> roots;  // links may lead below these too, links followed
};

// Checks every tensor, node and function of the model, at any depth. Gives the bytes of the external files,
// each counted once. kInvalidArgument names the tensor or the node that is refused; kCorrupt one that
// contradicts itself.
Result<uint64_t> CheckSafe(const pb::ModelProto& model, const Places& places);

}  // namespace weir::onnx
