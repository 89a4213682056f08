// One host's part of a run, as it goes to rank 0, and the run that the parts make together. Pure.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "cluster/message.h"
#include "infer/endpoint.h"
#include "load/generator/generator.h"
#include "load/verdict/judge.h"
#include "load/verdict/server_share.h"

namespace weir::load {

struct HostRun {
  RunOutcome played;
  Environment environment;
  infer::PhaseTotals server;  // counted by the server meanwhile, for all hosts
  std::optional<ServerShare> server_share;
  std::vector<infer::ServerCalls> calls;  // of this host, to each of several servers
};

// The histograms go in the block. The split of single requests is left out.
cluster::Message ToMessage(const HostRun& run);
// kCorrupt names the key.
Result<HostRun> HostRunFrom(const cluster::Message& message);

// Returns the run of all hosts together: counts and rates add up, histograms are merged, and times are those
// of the longest. REQUIRES: at least one part.
RunOutcome MergeRuns(const std::vector<HostRun>& runs);
// Returns the verdicts on such a run: on the figures of all hosts, and on each host's generator and machine.
// `rate`: of all hosts; nullopt for a closed loop.
Claims JudgeRuns(const std::vector<HostRun>& runs, const RunOutcome& merged, std::optional<double> rate);
// Returns the server's share of all hosts' requests: each host saw what the server counted for all. Nullopt
// if none knows it.
std::optional<ServerShare> MergeShares(const std::vector<HostRun>& runs);
// Returns the server's counts by the host that saw most of them.
infer::PhaseTotals MergeTotals(const std::vector<HostRun>& runs);

// Divides a level over hosts: a rate into shares of one schedule, a concurrency and a number of requests into
// nearly equal numbers. kInvalidArgument if there are fewer requests at a time, or in all, than hosts.
struct LevelShare {
  Scenario scenario;
  int64_t requests = 0;  // 0: the level has a length in time
};
Result<LevelShare> ShareOf(const Scenario& scenario, int64_t requests, int rank, int world);

}  // namespace weir::load
