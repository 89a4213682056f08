// Puts the inputs of several calls into one batch, and takes its outputs apart again.
#pragma once

#include <vector>

#include "base/error.h"
#include "infer/batcher.h"
#include "infer/tensor.h"

namespace weir::infer {

// The inputs of all calls, row behind row, by one copy; each call's own inputs then are slices of them. The
// calls fit together, as a Batcher sees to. kInvalidArgument when a tensor's data are not as large as its
// shape says: the calls are then as they were.
Result<std::vector<Tensor>> JoinInputs(Batch& batch);

// For each of `rows`, the part of every output: a slice, not a copy. kInternal, naming the output, when one
// has not as many rows as all of them together.
Result<std::vector<std::vector<Tensor>>> SplitOutputs(const std::vector<Tensor>& outputs,
                                                      const std::vector<int64_t>& rows);

}  // namespace weir::infer
