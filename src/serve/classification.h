// The classification extension: the best classes instead of all scores.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"

namespace weir::serve {

// Results of one output, over all rows. A batch of 64 pictures with 1,000 classes each has fewer.
inline constexpr int64_t kMostClassResults = 65'536;

// kInvalidArgument, with the remedy, where the `count` best of `classes` classes in each of `rows` rows are
// more than kMostClassResults.
Status CheckClassResults(int64_t rows, int64_t classes, int64_t count);

struct Classification {
  bool batched = false;                              // the first dimension of the scores counts rows
  int64_t count = 1;                                 // classes of each row
  const std::vector<std::string>* labels = nullptr;  // by index; null: none
  std::stop_token cancelled;
};

// Returns the `count` highest scores (all of them where there are fewer) as BYTES, each "value:index", with
// ":label" where there is a label for the index: shape [rows, count] for each row of a batched tensor,
// [count] over the whole of another. Equal scores: the lower index first; NaN last. Takes time in proportion
// to the scores. kInvalidArgument for types that are not numbers, and CheckClassResults' error; kCancelled
// once `cancelled` is asked for.
Result<infer::Tensor> Classify(const infer::Tensor& scores, const Classification& wanted);

}  // namespace weir::serve
