// The answers of an emulated accelerator: a function of the input's bytes, so that a payload that
// was damaged, or swapped for another, shows.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"

namespace weir::infer {

// An output that a model declares with the type and shape of an input is that input's bytes, not copied. Any
// other is filled, item by item, from a hash of the item's bytes in all inputs: floating-point numbers in [0,
// 1), other types any value. So an item has the same answer in every batch. Thread-safe: nothing changes
// after Create.
class EmulatedAnswer {
 public:
  // kInvalidArgument when a side is missing; kUnsupported for a BYTES output that repeats no input.
  static Result<EmulatedAnswer> Create(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }

  // `bound`: a checked tensor for each input. `wanted`: indices of outputs. A free dimension becomes the
  // batch where it is the first, else 1. kInvalidArgument when an output would be larger than 4 GiB.
  Result<std::vector<Tensor>> Make(const std::vector<const Tensor*>& bound,
                                   const std::vector<size_t>& wanted) const;

 private:
  EmulatedAnswer(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs);
  bool Hashes(const std::vector<size_t>& wanted) const;

  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  std::vector<std::optional<size_t>> repeats_;  // of each output, the input it repeats
};

}  // namespace weir::infer
