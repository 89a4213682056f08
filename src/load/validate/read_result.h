// A stored result of `weir load`, read for its rules.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "results/load_result.h"
#include "results/verdict.h"

namespace weir::load {

// Reads the JSON of `weir load --json`. The intervals of requests' times are those of chance alone: the part
// that may lie outside of the server is taken back. An open loop has no concurrency. Errors are
// LoadResult::FromJson's.
Result<results::LoadResult> ReadResult(const Json& json);

bool HasReason(const results::LoadResult::Level& level, results::Reason reason);
// Returns whether both claims are INVALID, and for this reason.
bool IsInvalidFor(const results::LoadResult::Level& level, results::Reason reason);

}  // namespace weir::load
