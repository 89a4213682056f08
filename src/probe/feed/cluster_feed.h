// A feed whose ranks agents on several hosts take: slices of one order, a step of all at a time.
#pragma once

#include <stop_token>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/message.h"
#include "feed/feed.h"
#include "results/feed_result.h"

namespace weir::probe {

inline constexpr char kFeedBegin[] = "begin_ns";  // on the host's clock

// kInvalidArgument names an option that is of one host alone.
Status CheckFeedHosts(const feed::FeedOptions& options);

// Has each host open its rank by `open`, and measures on all from one instant. The errors are those of
// FeedAgent and MergeFeeds, with the host's name. A lost host makes the result INVALID.
Result<results::FeedResult> FeedOnHosts(cluster::Cluster& hosts, const cluster::Message& open,
                                        const Clock& clock, const std::stop_token& stop);

}  // namespace weir::probe
