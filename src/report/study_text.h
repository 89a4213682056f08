// Figures of a study's result as text.
#pragma once

#include <optional>
#include <string>

#include "results/study_result.h"

namespace weir::report {

// Returns where an interval begins as people read it. The interval of a few trials may reach below 0, where
// no rate, time or share is. It begins at 0 then, unless a trial (`least`) was below 0.
std::optional<double> LowAt(std::optional<double> low, double least);
// Returns "412.1 (409 to 415)", the mean times `scale`; "-" of null.
std::string IntervalText(const results::Figures* figures, double scale = 1);
std::string IntervalText(const results::RatioFigures& ratio);
// Returns "higher" or "no difference shown (limit 2 %)".
std::string ToldText(const results::TestedRatio& tested);
// Returns why a verdict is not VALID: "steal: 3.1 %; slip: ..."; empty without reasons.
std::string ReasonsText(const results::Verdict& verdict);

}  // namespace weir::report
