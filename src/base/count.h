// Numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

std::string Count(int64_t n);                         // 1,234,567
std::string Count(int64_t n, std::string_view noun);  // "1 thread", "2 threads"
// Three significant digits: "0.012", "1.50", "12.3", "123", "12,345"; "-" for a value that is not finite.
std::string Short(double value);
std::string Size(double bytes);  // "1.50 GB"

}  // namespace weir
