// The flags of verbs that agents on several hosts can play, and of the agent.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cluster/join.h"
#include "cluster/message.h"

namespace weir::cli {

void AddClusterFlags(Flags& flags, cluster::JoinOptions& join);

// Waits for the agents, and says how well their clocks are known, and later which one is lost. `console` must
// outlive them.
Result<cluster::JoinedAgents> JoinAndSay(const cluster::JoinOptions& join, const Clock& clock,
                                         const Console& console, const std::stop_token& stop);

// This program's flags, for an agent that plays the same verb.
cluster::Message ArgumentsMessage();
Result<std::vector<std::string>> ArgumentsIn(const cluster::Message& request);

inline constexpr char kStateKey[] = "state";   // of a call that goes on from a state, beside the arguments
inline constexpr char kStepKey[] = "step_ns";  // of a feed whose step the caller has found

}  // namespace weir::cli
