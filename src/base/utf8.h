// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

// Returns the bytes of the character at the beginning of `text`, or 0 if there is none.
size_t Utf8Length(std::string_view text);

// Returns whether all of `text` is UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace weir
