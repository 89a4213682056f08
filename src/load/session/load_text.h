// The result of a load as text: what `weir load` prints, and perf_analyzer's table.
#pragma once

#include <string>

#include "base/text_style.h"
#include "load/session/load_result.h"

namespace weir::load {

// A level, as soon as it is played.
std::string LevelText(const TextStyle& style, const LoadSummary& result, const LevelResult& level);
// All levels in one table.
std::string TableText(const LoadSummary& result);
// Returns the generator's own maximum as text; empty if it was not measured.
std::string CeilingText(const LoadSummary& result);
// Returns the outcome of a search for the largest rate as text; empty if there was none.
std::string PeakText(const TextStyle& style, const LoadSummary& result);
// The table with perf_analyzer's columns.
std::string ResultCsv(const LoadSummary& result);

}  // namespace weir::load
