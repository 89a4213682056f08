// The trials of a study's journal, as rows for programs that learn from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "results/verdict.h"

namespace weir::record {

// One attempt of a trial, as texts.
struct Trial {
  using Cells = std::vector<std::pair<std::string, std::string>>;  // by name
  int64_t line = 0;                                                // of the journal
  // Id, attempt, configuration, block, position, role, seed, took_s, verdict.
  std::vector<std::string> place;
  results::Standing standing = results::Standing::kFailed;
  Cells factors;  // maps as JSON
  Cells metrics;  // numbers and texts by flat names: {"stages_ms": {"infer": 3}} is stages_ms.infer
  std::string command;
};

// Returns one attempt of each trial, in the order of the journal: the last, unless it went worse than the one
// before it. A study's analysis takes the same. A torn last line is ignored, because a study may be writing
// it. Returns kCorrupt with the line.
Result<std::vector<Trial>> LastTrials(std::string_view journal);

// Returns a row for each trial of LastTrials. Columns: those of Trial::place; the factors; the metrics, by
// the names that TakeMetricName gives them; command. Absent values are empty. Returns kNotFound if no trial
// has run yet, and kInvalidArgument beyond the limits of columns and cells.
Result<Csv> ParseTrials(std::string_view journal, const CsvLimits& limits = {});

}  // namespace weir::record
