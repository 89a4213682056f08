// Keeps text that strangers make as long as they like to a length that can be read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

// Returns `text`, or where it is longer than `max_bytes` its beginning and its end, that many bytes together,
// with the number of the bytes left out between them. Does not cut through a character of UTF-8.
std::string CutMiddle(std::string_view text, size_t max_bytes);

// Returns the first `max_bytes` of `text` in one line, with "..." behind them if there is more. Does not cut
// through a character of UTF-8.
std::string CutToOneLine(std::string_view text, size_t max_bytes);

// Returns the first 80 bytes of `text` in quotes. Control characters, quotes, backslashes and bytes that are
// not UTF-8 become \xNN.
std::string Quoted(std::string_view text);

}  // namespace weir
