// Text for terminals: bold words and bars. Whether the terminal can show bold is the caller's to know.
#pragma once

#include <string>
#include <string_view>

namespace weir {

class TextStyle {
 public:
  explicit TextStyle(bool bold = false) : bold_(bold) {}
  // Returns `text` between escape sequences for bold, or as it is.
  std::string Bold(const std::string& text) const;
  // Returns `text` with its control characters as "\\xNN". Sequences for bold stay if the terminal shows
  // them, and a backslash stays: it may belong to a name that is escaped already.
  std::string ForTerminal(std::string_view text) const;
  // Returns a bar of `width` cells, `share` of it filled. `share` is cut to 0 to 1.
  static std::string Bar(double share, int width);

 private:
  bool bold_;
};

}  // namespace weir
