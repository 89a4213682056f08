// A chart as a Vega-Lite specification, and the script that draws it without a network.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "report/document.h"

namespace weir::report {

// Returns the specification with its data: tooltips, and a legend that selects lines. A colour for each
// series as in the static drawing (report/svg.h). Vega-Lite 6.
Json ToVegaLite(const Chart& chart);

// Returns the JavaScript of Vega, Vega-Lite and Vega-Embed in one bundle; empty where the program was built
// without it (tools/setup.sh fetches it).
std::string_view VegaBundle();

// Returns a chart's points as CSV, for a link that downloads them.
std::string ChartCsv(const Chart& chart);

}  // namespace weir::report
