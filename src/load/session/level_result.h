// The result of one level, over its repeats.
#pragma once

#include <optional>
#include <vector>

#include "infer/endpoint.h"
#include "load/generator/generator.h"
#include "load/session/level.h"
#include "load/verdict/judge.h"
#include "load/verdict/mlperf.h"
#include "monitor/resources.h"
#include "stats/early_stopping.h"

namespace weir::load {

struct LevelResult {
  Level level;
  std::vector<RunOutcome> repeats;
  Tally tally;  // of all repeats
  Claims claims;
  double measured_s = 0, cpu_s = 0, spin_s = 0;                   // sums over the repeats
  infer::PhaseTotals server;                                      // counted by the server meanwhile
  std::vector<infer::ServerCalls> calls;                          // of each of several servers
  std::optional<ServerShare> server_share;                        // how much of it was ours
  std::optional<monitor::Resources> resources, server_resources;  // of the last repeat
  std::optional<stats::Answer> below_threshold;
  std::optional<MlperfResult> mlperf;

  double throughput() const;  // answers of all repeats over their measured time
  double elapsed_s() const;   // warm-ups and measured time
  int64_t answered() const { return tally.answered(); }
};

}  // namespace weir::load
