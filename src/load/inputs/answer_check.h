// Whether answers are the right ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "infer/call.h"
#include "infer/tensor.h"

namespace weir::load {

// Returns the fault of the answer to request `request` of the pool; nothing if it is right. Called by the
// threads that bring the answers, several at a time.
using AnswerCheck =
    std::function<std::optional<std::string>(size_t request, const infer::Response& response)>;

// The answer has these outputs, those of `expected[request]`, of the same type and shape. Floats of every
// width may lie `tolerance` times the largest finite magnitude of the output wanted apart, or one step of
// their own type; infinities must be the same, and NaN meets NaN alone. The type's greatest value counts as
// an infinity there, and may itself be off by its share. 0: to the last bit, as all other types.
AnswerCheck HasOutputs(std::vector<std::vector<infer::Tensor>> expected, double tolerance);

// Every row's best class, the greatest value of the first output (floats, none of them NaN), is the one
// wanted. `classes[request]` has one for each row; class 0 is the output's element `first_class`, and those
// before it are none.
AnswerCheck HasTopClasses(std::vector<std::vector<int>> classes, int first_class);

// The best class of each picture in a predictions file, the CSV file that `weir run --answers` writes. A
// value.
class TopClasses {
 public:
  // kInvalidArgument says what is not so in the file; `text` is its.
  static Result<TopClasses> Read(std::string_view text);

  // By the picture's name as found, or else by the last part of it, so that a folder may have moved.
  // kInvalidArgument, with the remedy, where there is none, or where that name has several classes.
  Result<int> Of(const std::string& picture) const;

 private:
  struct Classes {
    int first = 0;
    bool differ = false;
    std::string file, other;  // the first, and one of another class
  };
  static void Add(std::map<std::string, Classes>& classes, const std::string& name, const std::string& file,
                  int value);

  std::map<std::string, Classes> by_name_, by_last_part_;
};

}  // namespace weir::load
