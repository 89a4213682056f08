// What a study may vary: a closed list of factors, and the levels each may take. docs/studies.md says what
// they mean.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::study {

struct Factor {
  std::string_view name;
  std::string_view takes;         // its levels, in words
  std::optional<Json> otherwise;  // the level where a study names the factor, but a combination does not
};

// In the order in which combinations keep them.
const std::vector<Factor>& Factors();
std::vector<std::string_view> FactorNames();
bool IsFactor(std::string_view name);
// Whether its levels are numbers: what a chart can have along its x axis. REQUIRES: IsFactor(factor).
bool TakesNumbers(std::string_view factor);

// The level as it is kept: short forms written out ("variable", a bare rate), numbers of the right kind.
// kInvalidArgument says what the factor takes. REQUIRES: IsFactor(factor).
Result<Json> CheckLevel(std::string_view factor, const Json& level);

// A level in a few words, for tables and labels: "8", "grpc", "5 Gbit/s", a server's name.
std::string LevelText(std::string_view factor, const Json& level);
// The same where the factor's own name is not beside it: "batch 8", but "grpc".
std::string NamedLevelText(std::string_view factor, const Json& level);

}  // namespace weir::study
