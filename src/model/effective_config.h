// The configuration in force, as servers of the protocol tell it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "model/model.h"

namespace weir::model {

// A model as clients see it under one of its names.
struct ServedForm {
  std::string name;
  std::vector<infer::TensorInfo> inputs, outputs;  // with the batch dimension, -1, where max_batch > 0
  int max_batch = 0;
  int instances = 1;                              // in all, or on each of the GPUs
  std::vector<int> gpus;                          // where CUDA computes, as CUDA counts them
  std::string engine;                             // "onnxruntime", ...
  std::map<std::string, std::string> parameters;  // beside those of the configuration
};

struct EffectiveConfig {
  Json json;            // the field names of config.pbtxt, every field present, 64-bit integers as numbers
  std::string message;  // the bytes of an inference.ModelConfig
};

// The model's configuration completed by what is in force.
Result<EffectiveConfig> MakeEffectiveConfig(const Model& model, const ServedForm& form);

}  // namespace weir::model
