// Words of clients in messages of ours.
#pragma once

#include <string>
#include <string_view>

namespace weir::wire {

bool IsUtf8(std::string_view text);

// 'text' in quotes for a message: control characters, quotes, backslashes and what is not UTF-8 as \xNN, and
// no more than its first 80 bytes.
std::string Quoted(std::string_view text);

}  // namespace weir::wire
