// config.pbtxt, as Triton has it: what a model folder says of its model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/recipe.h"
#include "infer/tensor.h"

namespace weir::model {

struct ConfigTensor {
  infer::TensorInfo info;              // with the batch dimension, -1, where max_batch > 0
  std::optional<data::Layout> format;  // of an input, where it is said
  std::string label_filename;          // of an output; empty: none
};

struct Config {
  std::string name;     // empty: not said
  std::string backend;  // "onnxruntime", "openvino", "emulated"; empty: not said
  int max_batch = 0;    // 0: the dimensions are all there are
  std::vector<ConfigTensor> inputs;
  std::vector<ConfigTensor> outputs;
  std::vector<int64_t> versions;  // the only ones that may be used; empty: any
  std::string model_file = "model.onnx";
  std::map<std::string, std::string> parameters;  // "engine", "precision", "threads", "streams"
};

// kUnsupported names the line and the field, value or parameter that is not supported: nothing is passed
// over. kInvalidArgument for what is not protobuf text, or makes no sense. `instance_group` becomes the
// parameter "streams".
Result<Config> ParseConfig(std::string_view text);

}  // namespace weir::model
