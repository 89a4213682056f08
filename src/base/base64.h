// Base64 of RFC 4648, section 4, by OpenSSL.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir {

std::string EncodeBase64(std::string_view bytes);
// Returns whether all characters are of base64, wherever they stand.
bool HasBase64Only(std::string_view text);
// Returns the count of decoded bytes, by length and padding.
size_t DecodedBytes(std::string_view text);
// Returns kCorrupt for other characters (blanks too), a length that is no multiple of 4, and bits of the last
// group that stand for nothing. REQUIRES: `to` has DecodedBytes.
Status DecodeBase64(std::string_view text, std::span<char> to);

}  // namespace weir
