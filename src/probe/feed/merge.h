// The result of a feed whose ranks several hosts took, from the result of each. Pure.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "cluster/cluster.h"
#include "results/feed_result.h"

namespace weir::probe {

struct HostFeed {
  cluster::Host host;
  std::optional<results::FeedResult> result;  // nullopt: it was lost
};

// Returns one result for all ranks, in the order of their ranks: samples and bytes add up, the rate is over
// the longest time, and the hash of an epoch is that of one rank which takes all. The state is the earliest.
// The verdict is the worst of the hosts', and INVALID if one is lost. It has no provenance, command and
// resources. kInvalidArgument where the hosts read different sets; kIo if none has a result.
Result<results::FeedResult> MergeFeeds(const std::vector<HostFeed>& parts);

}  // namespace weir::probe
