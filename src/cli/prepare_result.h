// Prints the result of a preparation, for people and programs.
#pragma once

#include <string>

#include "prepare/prepare.h"
#include "results/prepare_result.h"

namespace weir::cli {

int64_t RejectedCount(const prepare::PrepareSummary& summary);

// The lines at the end. `folder` raw.
std::string SummaryText(const prepare::PrepareSummary& summary, const std::string& folder);
// The same figures; without the seed, the provenance and the command.
results::PrepareResult MakeResult(const prepare::PrepareSummary& summary, const std::string& folder);

}  // namespace weir::cli
