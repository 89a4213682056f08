// A load that agents on several hosts play together, and its verdict.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "cluster/cluster.h"
#include "load/session/level.h"
#include "load/session/level_result.h"
#include "load/session/options.h"
#include "monitor/server_watch.h"

namespace weir::load {

inline constexpr char kOpenVerb[] = "load.open", kPlayVerb[] = "load.play";

// kInvalidArgument names an option that is of one host alone.
Status CheckHosts(const LoadOptions& options);

// Plays one level with all its repeats on all hosts: each repeat begins at one instant. The claims of each
// host count for all, and INVALID is what a lost host leaves. options.server is watched from here, for the
// measured time. kIo if no host is left.
Result<LevelResult> PlayOnHosts(cluster::Cluster& hosts, const LoadOptions& options, const Level& level,
                                const LevelLength& length, Seed seed, const monitor::ServerAccess& access,
                                const Clock& clock, const std::stop_token& stop);

}  // namespace weir::load
