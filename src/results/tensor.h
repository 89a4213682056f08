// An input or output of a model, as several results have it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::results {

struct Tensor {
  std::string name, datatype;                 // datatype by the protocol's name: "FP32"
  std::optional<std::vector<int64_t>> shape;  // -1: any; absent: not even the number of dimensions is known
  bool optional = false;                      // an input that a request may leave out
  bool operator==(const Tensor&) const = default;
};

}  // namespace weir::results
