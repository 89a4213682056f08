// The rules for what the generator itself did in the runs of a level.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/validate/validate.h"
#include "results/load_result.h"

namespace weir::load {

// Adds what breaks the rule kGenerator: requests that were late, a generator that was busy and a rate that
// was missed are told by the verdicts. `ceiling_per_s`: LoadResult::Ceiling::ceiling_per_s; `where` is the
// level's place. Runs of a result that does not tell are passed over.
void CheckGenerator(const results::LoadResult::Level& level, std::optional<double> ceiling_per_s,
                    const std::string& where, std::vector<Finding>& findings);

}  // namespace weir::load
