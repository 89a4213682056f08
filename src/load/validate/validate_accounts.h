// The rules for where the time of a level went and what it used.
#pragma once

#include <string>
#include <vector>

#include "load/validate/validate.h"
#include "results/load_result.h"

namespace weir::load {

// Adds what breaks the rules kSplit, kServer, kResources and kMachine; `where` is the level's place.
void CheckAccounts(const results::LoadResult::Level& level, const std::string& where,
                   std::vector<Finding>& findings);

}  // namespace weir::load
