// Where the server says what a person should know. Libraries print nothing: the program decides.
#pragma once

#include <functional>
#include <string>

namespace weir::serve {

enum class LogLevel { kInfo, kWarning, kError };

// One line, without its newline. Thread-safe; called from any of the server's threads.
using Log = std::function<void(LogLevel, const std::string&)>;

}  // namespace weir::serve
