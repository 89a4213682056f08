#include "base/text_style.h"

#include <algorithm>
#include <cmath>

namespace weir {

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
