// RFC 4648, section 4: for blocks of numbers in JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::predict {

std::string EncodeBase64(std::string_view bytes);
// Whether it is made of its characters, wherever they stand.
bool HasBase64Only(std::string_view text);
// kCorrupt for other characters, or a length that is no multiple of 4.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace weir::predict
