// The combinations of levels that a study file asks for. Pure.
#pragma once

#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "study/study_file.h"

namespace weir::study {

// A level of every factor that is named anywhere in the study: `over`, else the base, else what is fixed or
// the first of its levels, else Factor::otherwise (absent where there is none).
Json BaseCombination(const StudyFile& study, const LevelLists& over = {});

// All of the design, in the order of Factors() with the last one fastest, then those of `also`; none twice.
// kInvalidArgument above 100,000.
Result<std::vector<Json>> AllCombinations(const StudyFile& study);

// Whether every factor of `lists` has one of its levels there.
bool Matches(const Json& factors, const LevelLists& lists);

}  // namespace weir::study
