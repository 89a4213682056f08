// The report of a study, the answer first. It formats a result (study/result_json.h) and works nothing out.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/document.h"
#include "report/study_view.h"

namespace weir::report {

Document StudyDocument(const Json& result);

// "data path" for "data_path".
std::string FactorWords(std::string name);

// Returns a line for each reason of skipped configurations, with the remedy once.
std::vector<std::string> SkippedByReason(const StudyView& study);

// Its sections, in their order.
Section AnswerSection(const StudyView& study);
Section ComparedSection(const StudyView& study);  // with another study, where the result has "compared"
Section FiguresSection(const StudyView& study);
Section ConfigurationsSection(const StudyView& study);
Section TimeSection(const StudyView& study);  // the waterfall and the bottlenecks
Section LatencySection(const StudyView& study);
Section MemorySection(const StudyView& study);
Section StabilitySection(const StudyView& study);
Section EffectsSection(const StudyView& study);
Section Table2Section(const StudyView& study);
Section ConditionsSection(const StudyView& study);
Section DoubtfulSection(const StudyView& study);
Section CombinationsSection(const StudyView& study);
Section RepeatSection(const StudyView& study);

}  // namespace weir::report
