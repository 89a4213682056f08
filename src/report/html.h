// A document as one HTML page that needs nothing else: no script, no font, no request.
#pragma once

#include <string>

#include "report/document.h"

namespace weir::report {

std::string ToHtml(const Document& document);

}  // namespace weir::report
