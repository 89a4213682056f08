// A training run that several hosts read together: rank 0's side.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/message.h"
#include "probe/storage_agent.h"
#include "probe/storage_scaling.h"
#include "probe/storage_session.h"
#include "stats/histogram.h"

namespace weir::probe {

// One host over all runs of the number of accelerators that is reported.
struct StorageHost {
  std::string name, build;
  std::optional<cluster::ClockOffset> clock;
  std::optional<std::string> lost;                   // why; nullopt: it was there to the end
  std::optional<double> utilisation, samples_per_s;  // medians of the runs
  std::vector<Duration> ended;                       // after the common begin, by run
  stats::Histogram barrier_ns;
  // With the hosts before it, as fast as they read; the share is the gain over the mean of those.
  std::optional<UnitRate> rate;
};

struct HostsReport {
  TrainReport train;  // its accelerators are those of one host
  std::vector<StorageHost> hosts;
  std::string lost;  // empty: no host is
};

// Called before rank 0 writes the first byte. The foreign folders are those that no host takes for its own.
using NoteSpace = std::function<void(const SpaceThere& there)>;

// Measures the rate with each number of hosts, then searches the number of accelerators of each host that is
// fed. `request` goes with every call that makes a HostsPlan of it. A lost host ends the probe with what was
// measured. kInvalidArgument if the hosts see different sets. kIo if a host is lost before they have opened
// them. Blocks. kCancelled after a stop.
Result<HostsReport> ProbeTrainingOnHosts(cluster::Cluster& hosts, const Json& request, const HostsPlan& plan,
                                         const NoteSpace& note_space, const Clock& clock,
                                         const std::stop_token& stop, const Progress& progress);

// Adds the doubts that only several hosts have: one that is lost, another build, an order that is not one
// permutation.
void JudgeHosts(const HostsReport& report, StorageVerdict& verdict);

}  // namespace weir::probe
