// Where the time of a level's requests went, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "cli/load_result.h"
#include "cli/server_times.h"

namespace weir::cli {

// What its server says of a request on average: with each response where it was asked to, else by its
// statistics. Nothing where it says nothing.
std::optional<ServerTimes> ServerTimesOf(const LevelResult& level);

// "server_ms", "split_ms", and of those above this percentile, 0 to 100, "slowest", where they are known.
void AddSplit(const LevelResult& level, double percentile, Json& json);
std::string SplitText(const LevelResult& level, double percentile);

}  // namespace weir::cli
