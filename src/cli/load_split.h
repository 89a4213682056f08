// Where the time of a level's requests went, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "cli/load_result.h"
#include "cli/server_times.h"

namespace weir::cli {

// What its server says of a request on average: with each response where it was asked to, else by its
// statistics.
struct ServerAccount {
  std::optional<ServerTimes> times;  // nothing where it says nothing, or what it says is not of our requests
  std::string left_out;              // why not, where it says something
};
ServerAccount ServerAccountOf(const LevelResult& level);

// "server_ms", "split_ms" or, where the server's account is not of our requests, "split_left_out" with the
// reason, "server_requests", and of those above this percentile, 0 to 100, "slowest", where they are known.
void AddSplit(const LevelResult& level, double percentile, Json& json);
std::string SplitText(const LevelResult& level, double percentile);

}  // namespace weir::cli
