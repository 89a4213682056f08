// A study as its user writes it. docs/studies.md has the format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::study {

struct FactorLevels {
  std::string factor;
  std::vector<Json> levels;  // as CheckLevel keeps them; at least one, no two alike
};
using LevelLists = std::vector<FactorLevels>;  // no factor twice

enum class Layout {
  kFactorial,  // every combination of the factors' levels
  kStar,       // the base, and every level of every factor with the others at the base
};

// Combinations that are left out, with the reason: those that have one of the listed levels of every factor
// named.
struct Exception {
  LevelLists when;
  std::string why;
};

// How long a trial is, fixed beforehand: in seconds, or the longest of the others.
struct TrialLength {
  std::optional<int64_t> images;
  std::optional<double> passes;  // over the data set
  std::optional<double> seconds;
  int64_t batches = 30;  // at least 30: fewer say little of a rate
  // At least so many response times: a trial of the load generator is lengthened to them, and the application
  // has them measured apart.
  std::optional<int64_t> responses;
};

enum class Better { kHigher, kLower };
struct Objective {
  std::string metric = "throughput_images_per_s";
  Better better = Better::kHigher;
};

// A chart of the report. With x: a line for each combination of the series factors over the levels of x.
// Without: a bar for each configuration.
struct Figure {
  std::string title;
  std::string metric;               // empty: the objective's
  std::optional<std::string> x;     // a factor of numbers
  std::vector<std::string> series;  // factors; with x and none of them: all the others that vary
  // Only configurations that one of these fits: none of its factors has another level than those listed
  // there. One that is not applicable in a configuration has none. Empty: all.
  std::vector<LevelLists> where;
};

struct Targets {
  std::optional<double> p99_ms;                  // at most, of response_ms.p99
  std::optional<double> images_per_s;            // at least, of throughput_images_per_s
  std::map<std::string, double> price_per_hour;  // by architecture, in the user's currency
};

struct StudyFile {
  std::string name;
  std::string question;  // what it is to decide; may be empty
  std::string data;      // empty where no trial reads any
  Layout layout = Layout::kFactorial;
  LevelLists factors;    // those that vary
  LevelLists fixed;      // one level each
  LevelLists base;       // one level each: the star's middle; what is not named has the first of its levels
  LevelLists reference;  // likewise, of the drift control and the comparisons; empty: the base
  std::vector<LevelLists> also;  // more combinations: the base with these levels, in all combinations of them
  std::vector<Exception> except;
  int repeats = 20;  // blocks
  TrialLength trial;
  uint64_t seed = 1;
  std::map<std::string, std::vector<int64_t>>
      shapes;  // of inputs with free dimensions, without the batch: the load generator's
  std::optional<std::string> server_host;  // "user@host": the second node is a real one
  std::vector<std::string> client_hosts;   // such, which load generators play on; empty: this machine
  Objective objective;
  Targets targets;
  std::vector<Figure> figures;
  // Steps from the simplest configuration to the base with these levels are played too; absent: none are.
  std::optional<LevelLists> waterfall;

  // All of it but comments and style: what a digest is made of, and what two versions are compared in.
  Json ToJson() const;
};

// kInvalidArgument: "line 7: factors.protocol: "htp" is none of http, grpc; did you mean http?".
Result<StudyFile> ParseStudy(std::string_view text);

}  // namespace weir::study
