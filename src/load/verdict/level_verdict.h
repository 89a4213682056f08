// Verdicts on a level, from those of its repeats. Pure.
#pragma once

#include <optional>
#include <vector>

#include "load/generator/generator.h"
#include "load/verdict/judge.h"
#include "monitor/resources.h"
#include "results/verdict.h"
#include "stats/early_stopping.h"

namespace weir::load {

// Merges `more` into `sum`: the worse standing, and the causes of both. Of each reason the first evidence
// stays.
void MergeVerdict(results::Verdict& sum, const results::Verdict& more);

// Makes a claim suspect where the repeats lie more than `percentage` percent apart: the throughput by their
// throughputs, the latency by their mean response times. Fewer than two repeats are not judged.
void JudgeSpread(const std::vector<RunOutcome>& repeats, double percentage, Claims& claims);

// Returns whether the quantile `p`, 0 to 1, of the response time is below `threshold_ms`. A request without
// an answer counts as longer than any threshold. Returns nullopt if the threshold is 0.
std::optional<stats::Answer> BelowThreshold(const Tally& tally, double p, double threshold_ms);

// The CPU time and the interruptions of a run that its verdict depends on.
struct RunSurroundings {
  const Scenario& scenario;
  std::optional<double> ceiling_per_s;
  int cpus = 1;                                               // of the machine
  bool is_local = false;                                      // the model runs in this process
  const std::optional<monitor::Resources>& resources;         // of this process and the machine
  const std::optional<monitor::Resources>& server_resources;  // of the server's processes, where watched
};
// Returns what Judge takes. Foreign CPU time is absent for a server that is not watched: it may run on this
// machine.
Environment FindEnvironment(const RunSurroundings& around);

}  // namespace weir::load
