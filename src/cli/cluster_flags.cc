#include "cli/cluster_flags.h"

namespace weir::cli {

void AddClusterFlags(Flags& flags, cluster::JoinOptions& join) {
  flags.Text("--hosts", join.hosts,
             "Hosts that play together, separated by commas: HOST:PORT of a weir agent that listens, or "
             "user@host, where ssh starts one.");
  flags.Text("--rendezvous", join.rendezvous,
             "HOST:PORT here, where agents come that srun, mpirun or Kubernetes started.");
  flags.Integer("--agents", join.agents, 1, 100'000, "Number of agents that come to --rendezvous.");
  flags.Text("--token-file", join.token_file,
             "File with the token that all agents share; needed beyond this machine, and encrypts.");
  flags.Text("--remote-weir", join.program, "Path of weir on hosts that ssh reaches (default weir).");
  flags.Number("--join-timeout-s", join.timeout_s, 0.1, 86400,
               "Seconds within which all agents must be there (default 60).");
}

}  // namespace weir::cli
