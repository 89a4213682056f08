// A document as Markdown (GitHub's, for its tables). Charts become their tables.
#pragma once

#include <string>

#include "report/document.h"

namespace weir::report {

std::string ToMarkdown(const Document& document);

}  // namespace weir::report
