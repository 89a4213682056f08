// Prints the result of a load on a model.
#pragma once

#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/load_flags.h"
#include "load/session/ceiling.h"
#include "load/session/run_levels.h"
#include "load/session/target.h"

namespace weir::cli {

using load::LevelResult;

struct LoadResult {
  const LoadFlags& flags;
  const load::Target& target;
  load::LevelLength length;
  int batch = 1;
  load::LevelsOutcome outcome;
  bool interrupted = false;
  std::optional<load::Ceiling> ceiling;  // the generator's own, where it was measured
};

// A level, as soon as it is played.
std::string LevelText(const Console& console, const LoadResult& result, const LevelResult& level);
// All levels in one table.
std::string TableText(const LoadResult& result);
// Returns the generator's own maximum as text; empty if it was not measured.
std::string CeilingText(const LoadResult& result);
// Returns the outcome of a search for the largest rate as text; empty if there was none.
std::string PeakText(const Console& console, const LoadResult& result);
// The table with perf_analyzer's columns.
std::string ResultCsv(const LoadResult& result);

}  // namespace weir::cli
