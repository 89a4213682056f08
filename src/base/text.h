// Text that strangers make: kept to a length that can be read, quoted and decoded.
#pragma once

#include <cstddef>
#include <optional>
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

// Returns the value of a hexadecimal digit, or -1 for any other character.
int HexDigit(char c);

// Returns the bytes of a part of a URL, "%20" decoded to a blank. Nullopt if a % lacks its two digits.
std::optional<std::string> DecodePercent(std::string_view text);

}  // namespace weir
