// Words of clients in messages of ours.
#pragma once

#include <string>
#include <string_view>

namespace weir::wire {

bool IsUtf8(std::string_view text);

// 'text' in quotes for a message: control characters, quotes, backslashes and what is not UTF-8 as \xNN, and
// no more than its first 80 bytes.
std::string Quoted(std::string_view text);

// What a server says of its fault, for an error that is kept: in one line, and no more than its first 1,000
// bytes, "..." behind them.
std::string WordsOf(std::string_view said);

}  // namespace weir::wire
