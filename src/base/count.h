// Whole numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

std::string Count(int64_t n);                         // 1,234,567
std::string Count(int64_t n, std::string_view noun);  // "1 thread", "2 threads"

}  // namespace weir
