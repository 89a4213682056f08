// Whether answers are the right ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "infer/call.h"
#include "infer/tensor.h"

namespace weir::load {

// What is wrong with the answer to request `request` of the pool; nothing where it is right. Called by the
// threads that bring the answers, several at a time.
using AnswerCheck =
    std::function<std::optional<std::string>(size_t request, const infer::Response& response)>;

// The answer has these outputs, those of `expected[request]`, of the same type and shape. Floats may lie
// `tolerance` times the largest magnitude of the output wanted apart; 0: to the last bit, as all other types.
AnswerCheck HasOutputs(std::vector<std::vector<infer::Tensor>> expected, double tolerance);

// Every row's best class, the greatest value of the first output, is the one wanted; -1 where any will do.
// `classes[request]` has one for each row; class 0 is the output's element `first_class`, and those before it
// are none.
AnswerCheck HasTopClasses(std::vector<std::vector<int>> classes, int first_class);

// The best class of each file in a protocol of answers, the CSV file that `weir run --answers` writes.
// kInvalidArgument says what is not so in it; `text` is the file's.
Result<std::vector<std::pair<std::string, int>>> ReadTopClasses(std::string_view text);

}  // namespace weir::load
