// The header Content-Range of HTTP (RFC 9110, 14.4).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::object {

struct ContentRange {
  int64_t first = 0, size = 0;   // size 0: "bytes */TOTAL", of a range that cannot be given
  std::optional<int64_t> total;  // absent: "*"

  bool operator==(const ContentRange&) const = default;
};

// Returns nullopt for what is none: "bytes FIRST-LAST/TOTAL" and "bytes */TOTAL".
std::optional<ContentRange> ParseContentRange(std::string_view text);

}  // namespace weir::object
