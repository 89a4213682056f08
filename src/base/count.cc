#include "base/count.h"

#include <fmt/format.h>

namespace weir {

std::string Count(int64_t n) {
  std::string digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string Count(int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", Count(n), noun, n == 1 ? "" : "s");
}

}  // namespace weir
