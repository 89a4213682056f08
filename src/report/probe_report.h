// The result of a storage probe as a document: its phases side by side, then each by itself.
#pragma once

#include "report/document.h"
#include "results/probe_result.h"

namespace weir::report {

Document ProbeDocument(const results::StorageProbeResult& result);

}  // namespace weir::report
