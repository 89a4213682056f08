// One host's part of a training run on several, as a message and merged with others. Pure.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/message.h"
#include "probe/storage_result.h"
#include "stats/histogram.h"

namespace weir::probe {

struct HostTrain {
  TrainRun run;
  stats::Histogram barrier_ns;  // the two messages of each step, without the wait for the last host
  Instant ended{};              // of its last step; on the host's clock in a message
};

// Histograms go in the block.
cluster::Message ToMessage(const HostTrain& part);
// kCorrupt names the key.
Result<HostTrain> HostTrainFrom(const cluster::Message& message);

// Returns the run of all hosts together: counts add up, histograms are merged, times are those of the slowest
// host, stalls are the mean. REQUIRES: at least one part.
TrainRun MergeTraining(const std::vector<HostTrain>& parts);

}  // namespace weir::probe
