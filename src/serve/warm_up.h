// The tensors that a model is run with before the first request reaches it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"
#include "model/model.h"

namespace weir::serve {

struct WarmUpSample {
  std::string name;
  int count = 1;                      // runs
  std::vector<infer::Tensor> inputs;  // as the model has them
};

// Returns the samples of the configuration's model_warmup; one row of zeros if it has none and the shapes
// are known. kInvalidArgument names what does not fit the model.
Result<std::vector<WarmUpSample>> MakeWarmUpSamples(const model::Model& model);

}  // namespace weir::serve
