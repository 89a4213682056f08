#include "serve/log_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "base/text.h"

namespace weir::serve {
namespace {

unsigned Byte(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// The bytes at the start of `text`, which is UTF-8, that no line may hold: 0 where there are none.
size_t Forbidden(std::string_view text) {
  if (Byte(text, 0) < 0x20) return 1;
  if (Byte(text, 0) != 0xe2) return 0;
  const unsigned second = Byte(text, 1), third = Byte(text, 2);
  const bool breaks_or_turns = second == 0x80 && third >= 0xa8 && third <= 0xae;  // U+2028 to U+202E
  const bool isolates = second == 0x81 && third >= 0xa6 && third <= 0xa9;         // U+2066 to U+2069
  return breaks_or_turns || isolates ? 3 : 0;
}

}  // namespace

std::string LogText(std::string_view text) {
  const std::string escaped = EscapeForTerminal(CutMiddle(text, kMaxLogText));
  std::string line;
  line.reserve(escaped.size());
  for (size_t at = 0; at < escaped.size();) {
    const size_t forbidden = Forbidden(std::string_view(escaped).substr(at));
    for (size_t i = 0; i < forbidden; ++i)
      fmt::format_to(std::back_inserter(line), "\\x{:02X}", Byte(escaped, at + i));
    if (forbidden == 0) line += escaped[at];
    at += std::max<size_t>(forbidden, 1);
  }
  return CutMiddle(line, 2 * kMaxLogText);  // escapes make it longer
}

std::string LogLine(std::string_view time, LogLevel level, std::string_view text) {
  const char* const kind = level == LogLevel::kError     ? "error: "
                           : level == LogLevel::kWarning ? "warning: "
                                                         : "";
  return fmt::format("{} {}{}\n", time, kind, text);
}

}  // namespace weir::serve
