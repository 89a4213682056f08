// The levels that a load plays, how long, and how often. Reads trace files; pure otherwise.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/tensor.h"
#include "load/generator/generator.h"
#include "load/session/options.h"
#include "load/verdict/mlperf.h"

namespace weir::load {

// Parses "a", "a:b", "a:b:step", "a:b:2x" (each twice the one before) or "a,b,c". kInvalidArgument says why
// the text is not a range.
Result<std::vector<double>> ParseRange(const std::string& text);
// Parses any number of "NAME:3,224,224".
Result<std::map<std::string, infer::Shape>> ParseShapes(const std::vector<std::string>& texts);

// One setting that is played.
struct Level {
  Scenario scenario;
  std::string name;   // "concurrency 8", "rate 200/s"
  Duration length{};  // that the level has itself, as a trace; 0: LengthOf says it
};
// REQUIRES: CheckOptions finds nothing. kInvalidArgument for a bad range or trace.
Result<std::vector<Level>> LevelsOf(const LoadOptions& options);
// Returns the most requests that any level has in flight.
int MostInFlight(const std::vector<Level>& levels);

// How long each level is played, and how often; fixed before the first level.
struct LevelLength {
  Duration length{};
  int64_t requests = 0;  // instead of the length, above 0
  int repeats = 1;
  std::string note;  // how flags that ask for another way were understood; empty: nothing to say
};
LevelLength LengthOf(const LoadOptions& options, const std::vector<Level>& levels = {});

// A scenario of MLPerf, and the level that plays it.
struct MlperfLevel {
  MlperfRules rules;
  Level level;
};
// Returns nullopt without a scenario. Sets the scenario's batch, length and percentile in `options` unless
// those are set already. kInvalidArgument names an unknown scenario or a missing target.
Result<std::optional<MlperfLevel>> FindMlperf(LoadOptions& options);

}  // namespace weir::load
