// A study's result as one JSON value: what `weir report` formats, and what programs read. docs/results.md has
// the keys.
#pragma once

#include "base/json.h"
#include "study/analysis.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/study_file.h"

namespace weir::study {

struct ResultInputs {
  const StudyFile& study;
  const Design& design;
  const StudyJournal& journal;
  AnalysisOptions options;
};

// Analyses and writes down everything, a row for each try of a trial among it.
Json ResultJson(const ResultInputs& inputs);

// The parts.
Json ToJson(const Figures& figures);
Json ToJson(const Comparison& comparison);
// The price of a million pictures by the study's prices, and whether its targets are met; empty without
// either.
Json TargetsJson(const Targets& targets, const Configuration& configuration, size_t index,
                 const Measured& measured, const AnalysisOptions& options);

}  // namespace weir::study
