// A document as one HTML page that needs nothing else: no font, no file, no request.
#pragma once

#include <string>

#include "report/document.h"

namespace weir::report {

enum class Charts {
  kStatic,       // drawings alone; the page runs no script
  kInteractive,  // where the program has the bundle (report/vega.h): over the drawings, which stay for print
                 // and for readers without scripts
};

std::string ToHtml(const Document& document, Charts charts = Charts::kStatic);

}  // namespace weir::report
