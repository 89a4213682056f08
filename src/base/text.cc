#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace weir {
namespace {

constexpr size_t kLongestCharacter = 4;  // bytes of one character in UTF-8

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns at most `most` bytes of `text`, without part of a character.
std::string_view Beginning(std::string_view text, size_t most) {
  std::string_view shown = text.substr(0, most);
  while (shown.size() < text.size() && !shown.empty() && Continues(text[shown.size()])) {
    shown.remove_suffix(1);
  }
  return shown;
}

}  // namespace

std::string CutMiddle(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t tail = max_bytes / 4, head = max_bytes - tail;
  for (size_t i = 1; i < kLongestCharacter && head > 0 && Continues(text[head]); ++i) --head;
  for (size_t i = 1; i < kLongestCharacter && tail > 0 && Continues(text[text.size() - tail]); ++i) --tail;
  return fmt::format("{}... ({} bytes left out) ...{}", text.substr(0, head), text.size() - head - tail,
                     text.substr(text.size() - tail));
}

std::string CutToOneLine(std::string_view text, size_t max_bytes) {
  std::string line(Beginning(text, max_bytes));
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line.size() < text.size() ? line + "..." : line;
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

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> DecodePercent(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return decoded;
}

}  // namespace weir
