// The text of a label file: ReadLabels of dataset/recipe.h reads one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::dataset {

inline constexpr size_t kMostLabels = size_t{1} << 20, kMostBytesOfALabel = 1024;
inline constexpr uint64_t kMostLabelBytes = uint64_t{32} << 20;  // of all of them

// Returns one label for each line; line k is class k. kInvalidArgument past the limits above.
Result<std::vector<std::string>> ParseLabels(std::string_view text);

}  // namespace weir::dataset
