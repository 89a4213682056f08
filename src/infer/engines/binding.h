// Checks a caller's inputs and outputs against the model's declarations. Shared by the engines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"

namespace weir::infer {

// The tensor for each declared input, in the order of `declared`. kInvalidArgument, naming the input, when
// one is missing, unknown or given twice, or its type, shape (a free dimension takes any size but 0) or data
// size differ.
Result<std::vector<const Tensor*>> BindInputs(const std::vector<TensorInfo>& declared,
                                              const std::vector<Tensor>& inputs);

// The index of each wanted output in `declared`, in the order wanted; all of them when `wanted` is empty.
Result<std::vector<size_t>> BindOutputs(const std::vector<TensorInfo>& declared,
                                        const std::vector<std::string>& wanted);

// The items of a batch: the first dimension; 1 for a scalar.
int64_t BatchSize(const Shape& shape);

// Bytes that an engine may read as elements of `tensor`: the tensor's own, or a copy where a payload that
// came through a wire lies across the alignment of its type.
Bytes AlignedData(const Tensor& tensor);

}  // namespace weir::infer
