// The result of a load as text: what `weir load` prints, and perf_analyzer's table.
#pragma once

#include <string>
#include <vector>

#include "base/text_style.h"
#include "load/generator/generator.h"
#include "load/session/load_result.h"

namespace weir::load {

// Returns the target and the length of a level.
std::string PlanText(const TextStyle& style, const LoadSummary& result);
// Returns notes on the length, and on levels whose requests wait for a connection.
std::vector<std::string> PlanNotes(const LoadSummary& result, const std::vector<Level>& levels);
// Returns the rate, the p99 and the failures so far, for a line of progress.
std::string ProgressText(const Progress& progress);
// Returns the figures of one level.
std::string LevelText(const TextStyle& style, const LoadSummary& result, const LevelResult& level);
// Returns all levels in one table.
std::string TableText(const LoadSummary& result);
// Returns the generator's own maximum as text; empty if it was not measured.
std::string CeilingText(const LoadSummary& result);
// Returns the outcome of a search for the largest rate as text; empty if there was none.
std::string PeakText(const TextStyle& style, const LoadSummary& result);
// Returns the table with perf_analyzer's columns.
std::string ResultCsv(const LoadSummary& result);

}  // namespace weir::load
