// Small constant arithmetic, so that a shape which the graph computes (Shape, Gather, Concat, Reshape ...)
// can be followed.
#pragma once

#include <cstdint>

#include "onnx/op.h"

namespace weir::onnx {

// Sets the content of output 0 where the operator is one of those that compute shapes and its inputs are
// known. Called after the operator's shape rule.
void FollowContent(Op& op);

// Elements that Slice takes of a dimension of `size`: bounds count from the end when negative, and are cut to
// it. `step` is not 0 and not the least integer.
int64_t SliceLength(int64_t size, int64_t start, int64_t end, int64_t step);

}  // namespace weir::onnx
