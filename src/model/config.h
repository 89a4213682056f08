// config.pbtxt, as Triton has it: what a model folder says of its model and of how it is served.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "dataset/recipe.h"
#include "infer/tensor.h"

namespace weir::model {

struct ConfigTensor {
  infer::TensorInfo info;  // as clients see it, with the batch dimension, -1, where max_batch > 0
  std::optional<infer::Shape>
      reshape;  // the model's own shape, where it is another, with the batch dimension
  std::optional<dataset::Layout> format;  // of an input, where it is said
  std::string label_filename;             // of an output; empty: none
  bool optional = false;                  // an input that a request may leave out

  const infer::Shape& model_shape() const { return reshape ? *reshape : info.shape; }
};

struct LatestVersions {
  int count = 1;
};
struct AllVersions {};
struct SpecificVersions {
  std::vector<int64_t> versions;
};
using VersionPolicy = std::variant<LatestVersions, AllVersions, SpecificVersions>;

struct QueuePolicy {
  enum class TimeoutAction { kReject, kDelay };
  TimeoutAction timeout_action = TimeoutAction::kReject;
  std::chrono::microseconds default_timeout{0};  // 0: none
  bool allow_timeout_override = false;           // a request may set a shorter one
  int max_queue_size = 0;                        // calls; 0: not said
};

struct DynamicBatching {
  std::vector<int> preferred_batch_sizes;  // rising
  std::chrono::microseconds max_queue_delay{0};
  int priority_levels = 0;  // 0: requests have no priorities; otherwise 1, the highest, to this
  int default_priority_level = 0;
  std::optional<QueuePolicy> default_queue_policy;
  std::map<int, QueuePolicy> priority_queue_policy;  // by level
};

struct WarmUpInput {
  infer::DType dtype = infer::DType::kFp32;
  infer::Shape dims;  // without the batch dimension
  bool random = false;
  std::string file;  // in the model folder's "warmup"; empty: zeros, or random
};
struct WarmUp {
  std::string name;
  int batch_size = 1;
  int count = 1;
  std::map<std::string, WarmUpInput> inputs;
};

struct Config {
  std::string name;                   // empty: not said
  std::string backend;                // "onnxruntime", "openvino", "emulated"; empty: not said
  std::optional<int> max_batch_size;  // as it is said
  int max_batch = 0;                  // 0: the dimensions are all there are
  std::vector<ConfigTensor> inputs;
  std::vector<ConfigTensor> outputs;
  VersionPolicy versions;
  std::string model_file = "model.onnx";
  std::map<std::string, std::string> parameters;  // "engine", "device", "precision", "streams" ...
  std::optional<DynamicBatching> dynamic_batching;
  std::vector<WarmUp> warm_ups;
  // All of it as the bytes of an inference.ModelConfig.
  std::string message;
};

// kUnsupported names the line and the field, value or parameter that is not supported: nothing is passed
// over. kInvalidArgument for what is not protobuf text, or makes no sense. `instance_group` becomes the
// parameter "streams", and one of GPUs becomes "device" too.
Result<Config> ParseConfig(std::string_view text);
// The same of the configuration as JSON, with the same field names.
Result<Config> ParseConfigJson(std::string_view json);

// "0-3,6": CPUs by number, as taskset has them. kInvalidArgument for what is none.
Result<std::vector<int>> ParseCpus(std::string_view text);

}  // namespace weir::model
