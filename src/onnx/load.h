// An ONNX file in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "onnx/proto.h"

namespace weir::onnx {

struct LoadedModel {
  pb::ModelProto model;
  std::string path;  // links followed
  uint64_t bytes = 0;
};

// kNotFound, kIo; kInvalidArgument for what is not a regular file, and for a file that would take more memory
// than MostParsedBytes of parse_cost.h; kUnsupported above 2 GiB; kCorrupt for what is not ONNX.
Result<LoadedModel> LoadModel(const std::string& path);
Result<pb::ModelProto> ParseModel(std::string_view bytes);

}  // namespace weir::onnx
