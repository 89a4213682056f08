// The four scenarios of MLPerf Inference as data, and what a run comes to by their rules (MLCommons,
// inference_policies and LoadGen's results.cc). A run that keeps them is MLPerf's in length and load alone:
// it is no submission. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "base/clock.h"
#include "base/error.h"
#include "load/generator/generator.h"

namespace weir::load {

enum class MlperfScenario {
  kSingleStream,  // a query of one sample, the next when it is answered
  kMultiStream,   // a query of eight samples, the next when it is answered
  kServer,        // queries of one sample come by chance, at a rate
  kOffline,       // all samples are there from the start
};
inline constexpr Choices<MlperfScenario, 4> kMlperfScenarios{
    {{MlperfScenario::kSingleStream, "single-stream"},
     {MlperfScenario::kMultiStream, "multi-stream"},
     {MlperfScenario::kServer, "server"},
     {MlperfScenario::kOffline, "offline"}}};
constexpr std::string_view ToString(MlperfScenario scenario) { return WordOf(kMlperfScenarios, scenario); }

struct MlperfRules {
  MlperfScenario scenario = MlperfScenario::kSingleStream;
  Scenario play = Concurrency{.in_flight = 1};
  int samples_per_query = 1;            // rows of a request; 0: any number
  Duration min_duration = 600s;         // measured
  int64_t min_queries = 0;              // below them early stopping says nothing
  int64_t min_samples = 0;              // answered
  std::optional<double> percentile;     // of the response time, 0 to 1: what the metric or the bound is of
  std::optional<double> latency_bound;  // seconds, by default; for it to hold is what makes the metric valid
  std::string_view metric, unit;
};
// The parameters of a scenario that its user chooses.
struct MlperfTargets {
  double rate = 0;  // server: queries a second
  int depth = 0;  // offline: queries that are out at a time; enough of them leave no part of the system idle
};
// kInvalidArgument names the target that is missing.
Result<MlperfRules> RulesOf(MlperfScenario scenario, const MlperfTargets& targets = {});

struct MlperfResult {
  std::string metric;                   // with its unit
  std::optional<double> value;          // also of a run that falls short, where it has one
  bool valid = false;                   // it does not fall short
  std::vector<std::string> shortfalls;  // what is missing and what to do about it, a sentence each
};
// `rows_per_query`: samples in each request that was played. `latency_bound`, in seconds: of the server
// scenario, else the rules' own. A query that was not answered counts as one that took longer than any. The
// response time is that of LoadGen: from the moment the query was due.
MlperfResult Judge(const MlperfRules& rules, const RunOutcome& played, int rows_per_query,
                   std::optional<double> latency_bound = std::nullopt);

}  // namespace weir::load
