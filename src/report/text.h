// Parts of a document as plain text for a terminal.
#pragma once

#include <string>

#include "report/document.h"

namespace weir::report {

// Text is broken at spaces to lines of at most `width` columns, bytes of UTF-8 counted as the characters they
// make; tables are as wide as they are. Charts become their tables.
std::string ToText(const Section& section, size_t width = 110);

}  // namespace weir::report
