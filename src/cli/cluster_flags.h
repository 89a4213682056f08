// The flags of verbs that agents on several hosts can play, and of the agent.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cluster/allowed_paths.h"
#include "cluster/join.h"
#include "cluster/message.h"

namespace weir::cli {

void AddClusterFlags(Flags& flags, cluster::JoinOptions& join);

// Waits for the agents, and says how well their clocks are known, and later which one is lost. `console` must
// outlive them.
Result<cluster::JoinedAgents> JoinAndSay(const cluster::JoinOptions& join, const Clock& clock,
                                         const Console& console, const std::stop_token& stop);

// A call for agents that play a verb with this program's flags, and what the caller has found beside them.
struct FlagsCall {
  std::vector<std::string> arguments;  // of the verb
  std::string state;                   // of a feed: to go on from; empty: none
  Duration step{};                     // of a feed or a probe
  int batch = 1;                       // of a probe

  cluster::Message ToMessage() const;
  // kCorrupt names the key.
  static Result<FlagsCall> From(const cluster::Message& message);
};
// This program's own arguments, behind the verb.
std::vector<std::string> OwnArguments();

// A file or folder that a flag names.
struct NamedPath {
  std::string flag, path;
};
// kInvalidArgument names the first of a caller's paths that this agent does not open.
Status CheckPaths(const cluster::AllowedPaths& allowed, const std::vector<NamedPath>& paths);

}  // namespace weir::cli
