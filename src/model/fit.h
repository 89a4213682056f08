// Whether the parts of a model belong together: its configuration, its recipe and its file.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/recipe.h"
#include "infer/tensor.h"
#include "model/config.h"

namespace weir::model {

// An output of the file that is no tensor, or of a type that cannot be sent.
struct LeftOut {
  std::string name, datatype;  // "SEQUENCE", "INT4"
};

struct Tensors {
  std::vector<infer::TensorInfo> inputs;
  std::vector<infer::TensorInfo> outputs;
  std::vector<infer::TensorInfo> filled;  // inputs that the file has values for
  std::vector<LeftOut> left_out;
};

// The tensors of the file as the configuration narrows them: where one says -1 and the other a number, the
// number holds, and so does the configuration's shape where the file tells none. A row that is a single
// number may have the dims [1]. All inputs, and those outputs that the configuration lists; all where it
// lists none. An input that the file has a value for is there where the configuration lists it.
// kInvalidArgument names what contradicts: a max_batch_size, too, where a tensor's first dimension is another
// number, or there is no input whose first dimension could be the rows.
Result<Tensors> Narrow(const Tensors& file, const Config& config);

// kInvalidArgument names what of `recipe` does not fit the model: input or output name, data type, layout,
// channels, size.
Status CheckFits(const dataset::Recipe& recipe, const Tensors& tensors);

}  // namespace weir::model
