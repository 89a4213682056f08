// The numbers of a chart, for those who cannot see it, and for formats that cannot draw.
#pragma once

#include "report/document.h"

namespace weir::report {

Table ToTable(const Chart& chart);

}  // namespace weir::report
