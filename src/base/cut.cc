#include "base/cut.h"

#include <fmt/format.h>

namespace weir {
namespace {

constexpr size_t kLongestCharacter = 4;  // bytes of one character in UTF-8

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string CutMiddle(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t tail = max_bytes / 4, head = max_bytes - tail;
  for (size_t i = 1; i < kLongestCharacter && head > 0 && Continues(text[head]); ++i) --head;
  for (size_t i = 1; i < kLongestCharacter && tail > 0 && Continues(text[text.size() - tail]); ++i) --tail;
  return fmt::format("{}... ({} bytes left out) ...{}", text.substr(0, head), text.size() - head - tail,
                     text.substr(text.size() - tail));
}

}  // namespace weir
