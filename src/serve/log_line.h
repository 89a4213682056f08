// One line of the server's log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "serve/log.h"

namespace weir::serve {

// Bytes of a message that the log keeps. Clients choose names and ids: what is longer is cut in its middle.
constexpr size_t kMaxLogText = 2048;

// Returns `text` as one line that a terminal and a reader of lines can take: cut, with control characters,
// line breaks of Unicode, codes that turn the direction of writing, and bytes that are not UTF-8 as "\xNN".
std::string LogText(std::string_view text);

// Returns "TIME TEXT\n", or "TIME warning: TEXT\n" and "TIME error: TEXT\n". `text` is LogText's.
std::string LogLine(std::string_view time, LogLevel level, std::string_view text);

}  // namespace weir::serve
