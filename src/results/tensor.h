// An input or output of a model, as several results have it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::results {

struct Tensor {
  std::string name, datatype;  // datatype by the protocol's name: "FP32"
  std::vector<int64_t> shape;  // -1: any
  bool operator==(const Tensor&) const = default;
};

}  // namespace weir::results
