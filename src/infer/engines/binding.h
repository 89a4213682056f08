// Checks a caller's inputs and outputs against the model's declarations. Shared by the engines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"

namespace weir::infer {

// Puts into what a library says of its tensors what it cannot say: the shape of one whose rank is open in the
// file, which it tells as that of a single number.
void TakeDeclaredShapes(const std::vector<TensorInfo>& declared, std::vector<TensorInfo>& told);

// Returns for each output the index of the input that it is: the graph hands such a one on, under the same
// name. The answer must then be the caller's own bytes, which outlive the call: AnswerWith makes it.
std::vector<std::optional<size_t>> InputsHandedOn(const std::vector<TensorInfo>& inputs,
                                                  const std::vector<TensorInfo>& outputs);
Tensor AnswerWith(const Tensor& input);

// The tensor for each declared input, in the order of `declared`; null for an optional one that is left out.
// kInvalidArgument, naming the input, when one is missing, unknown or given twice, or its type, shape (a free
// dimension takes any size) or data size differ.
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
