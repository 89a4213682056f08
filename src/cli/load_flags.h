// The flags of `weir load`. The names and meanings are perf_analyzer's where it has them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cluster_flags.h"
#include "cluster/join.h"
#include "load/session/options.h"

namespace weir::cli {

struct LoadFlags : load::LoadOptions {
  std::string csv, json, validate;
  bool verbose = false;
  cluster::JoinOptions join;       // the hosts that play; none: this one
  std::vector<std::string> given;  // by their long names: Flags::Given
};

// Returns the exit status if there is nothing more to do.
std::optional<int> ParseLoadFlags(const std::vector<std::string>& arguments, LoadFlags& flags);

// Returns the files, folders and stores that the flags have a host open.
std::vector<NamedPath> PathsOf(const LoadFlags& flags);

// kInvalidArgument names a flag that is not applicable, or flags that contradict one another.
Status CheckFlags(const LoadFlags& flags);

}  // namespace weir::cli
