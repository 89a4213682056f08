// The parts of a level's response time, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "load/session/level_split.h"

namespace weir::cli {

// Adds "server_ms" and "split_ms", or "split_left_out" with the reason if the server's account is not of our
// requests; also "server_requests", and "slowest" for the requests above `percentile`, 0 to 100, if their
// parts are known.
void AddSplit(const load::LevelResult& level, double percentile, Json& json);
std::string SplitText(const load::LevelResult& level, double percentile);

}  // namespace weir::cli
