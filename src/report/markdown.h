// A document as Markdown (GitHub's, for its tables), and as JSON. Charts become their tables.
#pragma once

#include <string>

#include "base/json.h"
#include "report/document.h"

namespace weir::report {

std::string ToMarkdown(const Document& document);

// Everything that a document holds: {"title", "subtitle", "sections": [{"title", "blocks": [{"kind": "table",
// ...}]}]}.
Json ToJson(const Document& document);

}  // namespace weir::report
