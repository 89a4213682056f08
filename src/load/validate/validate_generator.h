// The rules for what the generator itself did in the runs of a level.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/validate/stored_result.h"
#include "load/validate/validate.h"

namespace weir::load {

// Adds what breaks the rule kGenerator: requests that were late, a generator that was busy and a rate that
// was missed are told by the verdicts. `ceiling_per_s`: Stored::ceiling_per_s; `where` is the level's place.
// Runs of a result that does not tell are passed over.
void CheckGenerator(const stored::Level& level, std::optional<double> ceiling_per_s, const std::string& where,
                    std::vector<Finding>& findings);

}  // namespace weir::load
