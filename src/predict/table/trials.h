// A study's journal as rows, and the SPEC that its factors make.
#pragma once

#include <string>
#include <string_view>

#include "base/csv.h"
#include "base/error.h"

namespace weir::predict {

// Returns a row for each trial, by its last attempt, in the journal's order. Columns: id, attempt,
// configuration, block, position, role, seed, took_s, verdict; the factors, a map as JSON; the metrics,
// numbers and texts by flat names ({"stages_ms": {"infer": 3}} is stages_ms.infer) as TakeMetricName names
// them; command. Absent values are empty. A torn last line is ignored, because a study may be writing it.
// Returns kCorrupt with the line, or kNotFound if no trial has run yet.
Result<Csv> ParseTrials(std::string_view journal);

// Returns a SPEC that predicts the time of an image from the study's factors: a constant, each numeric factor
// and its inverse as terms, and the other factors as categories. Factors with one level are left out. Returns
// kInvalidArgument if no factor has two levels, or no trial has a throughput.
Result<std::string> SpecOfTrials(std::string_view journal, const std::string& name);

}  // namespace weir::predict
