#include "base/text_style.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace weir {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kPlain = "\x1b[0m";

// Returns the length of the part of `text` that is not escaped: a backslash, or a sequence for bold text.
size_t Kept(std::string_view text, bool bold) {
  if (text.starts_with('\\')) return 1;
  return bold && (text.starts_with(kBold) || text.starts_with(kPlain)) ? kBold.size() : 0;
}

}  // namespace

std::string TextStyle::ForTerminal(std::string_view text) const {
  std::string shown;
  while (!text.empty()) {
    size_t length = Kept(text, bold_);
    if (length > 0) {
      shown += text.substr(0, length);
    } else {
      length = std::min(text.find_first_of("\\\x1b", 1), text.size());
      shown += EscapeForTerminal(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return shown;
}

std::string TextStyle::Bold(const std::string& text) const {
  return bold_ ? "\x1b[1m" + text + "\x1b[0m" : text;
}

std::string TextStyle::Bar(double share, int width) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  const int cells = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return bar + std::string(static_cast<size_t>(width - cells), ' ');
}

}  // namespace weir
