// The flags of verbs that agents on several hosts can play, and of the agent.
#pragma once

#include "cli/flags.h"
#include "cluster/join.h"

namespace weir::cli {

void AddClusterFlags(Flags& flags, cluster::JoinOptions& join);

}  // namespace weir::cli
