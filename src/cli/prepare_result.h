// What a preparation came to, for people and programs.
#pragma once

#include <string>

#include "base/json.h"
#include "prepare/prepare.h"

namespace weir::cli {

// The stage that the work waited for most, and its share of the time: of all workers' time, or for the
// writing thread of the bottleneck's. Empty where nothing was done.
struct PrepareBottleneck {
  std::string stage;
  double share = 0;
};
PrepareBottleneck BottleneckOf(const prepare::PrepareSummary& summary);

int64_t RejectedCount(const prepare::PrepareSummary& summary);

// The lines at the end. `folder` raw.
std::string SummaryText(const prepare::PrepareSummary& summary, const std::string& folder);
// format, images, rejected, skipped, images_per_s, wall_s, bytes_in, bytes_out, stages_s, bottleneck, ...
Json SummaryJson(const prepare::PrepareSummary& summary, const std::string& folder);

}  // namespace weir::cli
