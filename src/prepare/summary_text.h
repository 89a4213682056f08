// A preparation that has ended: its text for people and its typed result.
#pragma once

#include <string>

#include "prepare/prepare.h"
#include "results/prepare_result.h"

namespace weir::prepare {

int64_t RejectedCount(const PrepareSummary& summary);

// The lines at the end. `folder` raw.
std::string SummaryText(const PrepareSummary& summary, const std::string& folder);
// The same figures; without the seed, the provenance and the command.
results::PrepareResult MakeResult(const PrepareSummary& summary, const std::string& folder);

}  // namespace weir::prepare
