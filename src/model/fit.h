// Whether the parts of a model belong together: its configuration, its recipe and its file.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/recipe.h"
#include "infer/tensor.h"
#include "model/config.h"

namespace weir::model {

struct Tensors {
  std::vector<infer::TensorInfo> inputs;
  std::vector<infer::TensorInfo> outputs;
};

// The tensors of the file as the configuration narrows them: where one says -1 and the other a number, the
// number holds. All inputs, and those outputs that the configuration lists; all where it lists none.
// kInvalidArgument names what contradicts: a max_batch_size, too, where a tensor's first dimension is another
// number, or there is no input whose first dimension could be the rows.
Result<Tensors> Narrow(const Tensors& file, const Config& config);

// kInvalidArgument names what of `recipe` does not fit the model: input or output name, data type, layout,
// channels, size.
Status CheckFits(const dataset::Recipe& recipe, const Tensors& tensors);

}  // namespace weir::model
