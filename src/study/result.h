// A study's result: what `weir report` formats, and what programs read. Pure.
#pragma once

#include "results/study_result.h"
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

// Analyses the trials. The result has a row for each try of a trial.
results::StudyResult MakeResult(const ResultInputs& inputs);

// Returns the design and its reasons, for people and for the report.
results::StudyDesign MakeDesignResult(const Design& design);

// The parts.
results::Figures ToFigures(const stats::Summary& summary, const stats::MedianInterval& median);
results::TestedRatio ToTested(const Tested& tested);
// Returns the price of a million pictures by the study's prices, and whether its targets are met; empty
// without either.
results::StudyResult::Targets FindTargets(const Targets& targets, const Configuration& configuration,
                                          size_t index, const Measured& measured,
                                          const AnalysisOptions& options);

}  // namespace weir::study
