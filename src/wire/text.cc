#include "wire/text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>

namespace weir::wire {
namespace {

// No more than `most` bytes of `text`, and no part of a character.
std::string_view Beginning(std::string_view text, size_t most) {
  std::string_view shown = text.substr(0, most);
  while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xc0) == 0x80) {
    shown.remove_suffix(1);
  }
  return shown;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  const bool ascii = text.size() < 64 && std::ranges::none_of(text, [](char c) { return (c & 0x80) != 0; });
  return ascii || simdjson::validate_utf8(text.data(), text.size());
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 80;
  const std::string_view shown = Beginning(text, kMost);
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

std::string WordsOf(std::string_view said) {
  constexpr size_t kMost = 1000;
  std::string words(Beginning(said, kMost));
  std::ranges::replace_if(words, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return words.size() < said.size() ? words + "..." : words;
}

}  // namespace weir::wire
