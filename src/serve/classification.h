// The classification extension: the best classes instead of all scores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"

namespace weir::serve {

// The `count` highest scores (all of them where there are fewer) as BYTES, each "value:index", with ":label"
// where `labels` has one for the index: shape [rows, count] for each row of a batched tensor, [count] over
// the whole of another. Equal scores: the lower index first; NaN last. kInvalidArgument for types that are
// not numbers.
Result<infer::Tensor> Classify(const infer::Tensor& scores, bool batched, int64_t count,
                               const std::vector<std::string>& labels);

}  // namespace weir::serve
