// The result of one level, over its repeats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "infer/endpoint.h"
#include "load/generator/generator.h"
#include "load/session/level.h"
#include "load/verdict/judge.h"
#include "load/verdict/mlperf.h"
#include "monitor/resources.h"
#include "stats/early_stopping.h"

namespace weir::load {

// One host's part of a level that several played.
struct HostPart {
  std::string name;
  int rank = 0;
  std::optional<Duration> clock_offset, clock_error;  // of its clock against that of rank 0
  std::optional<std::string> lost;                    // why; nullopt: it was there to the end
  Tally tally;                                        // of all repeats, as below
  double throughput = 0;                              // answers a second, of the mean of the repeats
  double measured_s = 0, cpu_s = 0;
  Claims claims;
};

struct LevelResult {
  Level level;
  std::vector<RunOutcome> repeats;
  std::vector<Environment> environments;  // of each, on this host
  Tally tally;                            // of all repeats
  Claims claims;
  double measured_s = 0, cpu_s = 0, spin_s = 0;                   // sums over the repeats
  infer::PhaseTotals server;                                      // counted by the server meanwhile
  std::vector<infer::ServerCalls> calls;                          // of each of several servers
  std::optional<ServerShare> server_share;                        // how much of it was ours
  std::optional<monitor::Resources> resources, server_resources;  // of the last repeat
  std::optional<stats::Answer> below_threshold;
  std::optional<MlperfResult> mlperf;
  std::vector<HostPart> hosts;  // empty: one host played it, this one

  double throughput() const;  // answers of all repeats over their measured time
  double elapsed_s() const;   // warm-ups and measured time
  int64_t answered() const { return tally.answered(); }
};

}  // namespace weir::load
