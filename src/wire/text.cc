#include "wire/text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>

namespace weir::wire {

bool IsUtf8(std::string_view text) {
  const bool ascii = text.size() < 64 && std::ranges::none_of(text, [](char c) { return (c & 0x80) != 0; });
  return ascii || simdjson::validate_utf8(text.data(), text.size());
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 80;
  std::string_view shown = text.substr(0, kMost);
  while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xc0) == 0x80) {
    shown.remove_suffix(1);  // not in the middle of a character
  }
  const bool utf8 = IsUtf8(shown);
  std::string quoted = "'";
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x80 ? utf8 : byte >= 0x20 && byte != 0x7f && c != '\'' && c != '\\';
    if (plain) {
      quoted += c;
    } else {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02X}", byte);
    }
  }
  quoted += shown.size() < text.size() ? "...'" : "'";
  return quoted;
}

}  // namespace weir::wire
