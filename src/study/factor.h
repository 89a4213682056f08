// The factors of a study: a closed list, and the levels each may take. docs/studies.md explains
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::study {

// The levels of a factor: a word of a list, a whole number, any text, or a map with a check of its own.
struct Words {
  std::vector<std::string_view> words;
  std::string_view prefix = {};  // words that begin so are levels too, such as "emulated:"
};
struct WholeNumbers {
  int64_t low = 0, high = 0;
};
struct AnyText {};
struct Checked {
  Result<Json> (*check)(const Json& level) = nullptr;  // gives the level as it is kept
};
using Levels = std::variant<Words, WholeNumbers, AnyText, Checked>;

// The flags of the client that a level becomes, "--flag LEVEL"; empty: that client has none. A level equal to
// the default is not passed.
struct ClientFlags {
  std::string_view run, load;
};

// One entry of the table: all that a study knows of a factor.
struct Factor {
  std::string_view name;
  std::string takes;  // its levels, in words
  Levels levels;
  std::optional<Json> otherwise = {};  // the level where a study names the factor, but a combination does not
  std::string_view applies = {};       // where it is applicable; empty: everywhere
  std::string_view becomes = {};       // the flags or actions that obey it, in words
  ClientFlags flags = {};              // passed on as they are, without code of the factor's own
};

// In the order in which combinations keep them.
const std::vector<Factor>& Factors();
std::vector<std::string_view> FactorNames();
// Returns nullptr if there is no such factor.
const Factor* FindFactor(std::string_view name);
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

// Returns the words that a factor of words takes, in the order of the table. REQUIRES: it is such a factor.
const std::vector<std::string_view>& WordsOf(std::string_view factor);

// Returns the table as a page of the documentation, docs/reference/factors.md.
std::string FactorsPage();

}  // namespace weir::study
