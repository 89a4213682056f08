// The report of a study, the answer first. It formats a result (results/study_result.h) and works nothing
// out.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "results/study_result.h"

namespace weir::report {

using results::StudyResult;

Document StudyDocument(const StudyResult& study);

// Returns the answer in a few lines, a table of the configurations, and the names of the files in `folder`.
std::string AnswerText(const StudyResult& study, const std::string& folder);

// Returns words for a factor: "data path" for "data_path".
std::string FactorWords(std::string name);

// Returns a line for each reason of skipped configurations, with the remedy once.
std::vector<std::string> SkippedByReason(const StudyResult& study);

// Its sections, in their order.
Section AnswerSection(const StudyResult& study);
Section ComparedSection(const StudyResult& study);  // with another study, where there is one
Section FiguresSection(const StudyResult& study);
Section ConfigurationsSection(const StudyResult& study);
Section TimeSection(const StudyResult& study);    // the waterfall and the bottlenecks
Section PhasesSection(const StudyResult& study);  // empty where no phases ran beside the client
Section LatencySection(const StudyResult& study);
Section MemorySection(const StudyResult& study);
Section StabilitySection(const StudyResult& study);
Section EffectsSection(const StudyResult& study);
Section Table2Section(const StudyResult& study);
Section ConditionsSection(const StudyResult& study);
Section DoubtfulSection(const StudyResult& study);
Section CombinationsSection(const StudyResult& study);
Section RepeatSection(const StudyResult& study);

}  // namespace weir::report
