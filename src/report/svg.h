// A chart as an SVG element that stands in an HTML page: no script, no outside resource, readable by a screen
// reader, and its numbers in a table beside it (report/html.h). docs/studies.md has why there is no chart
// library.
#pragma once

#include <string>
#include <string_view>

#include "report/document.h"

namespace weir::report {

// Returns the colour of a series, "#0072b2": one that people who see no colours can distinguish too.
std::string_view SeriesColour(size_t index);

// `id` must be unique in the page: the element's title and description are named by it.
std::string ToSvg(const Chart& chart, const std::string& id);

}  // namespace weir::report
