// `weir probe storage` on several hosts, by agents: both ends of its calls.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/seed.h"
#include "cli/console.h"
#include "cli/probe_storage_flags.h"
#include "cluster/agent.h"
#include "cluster/allowed_paths.h"
#include "probe/storage_hosts.h"

namespace weir::cli {

// The verbs of an agent's session.
void AddStorageVerbs(cluster::Verbs& verbs, const cluster::AllowedPaths& allowed, const Clock& clock);

// Joins the agents that the flags name, and probes with them. `arguments` are those of this command.
Result<probe::HostsReport> ProbeStorageOnHosts(const Arguments& arguments, const probe::StorageRequest& flags,
                                               const probe::StorageProfile& profile, Console& console,
                                               const Clock& clock, const std::stop_token& stop);

// Draws the pictures of a written set.
Result<std::vector<std::string>> DrawPictures(Seed seed, int count);

}  // namespace weir::cli
