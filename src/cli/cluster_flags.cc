#include "cli/cluster_flags.h"

#include "base/json.h"
#include "cli/verbs.h"

namespace weir::cli {

void AddClusterFlags(Flags& flags, cluster::JoinOptions& join) {
  flags.Text("--hosts", join.hosts,
             "hosts that play together, separated by commas: HOST:PORT of a weir agent that listens; or "
             "user@host, where ssh starts one, and local, a process of this machine");
  flags.Text("--rendezvous", join.rendezvous,
             "HOST:PORT here, where agents come that srun, mpirun or Kubernetes started");
  flags.Integer("--agents", join.agents, 1, 100'000, "number of agents that come to --rendezvous");
  flags.Text("--token-file", join.token_file,
             "file with the token that all agents share; needed beyond this machine, and encrypts");
  flags.Text("--remote-weir", join.program, "path of weir on hosts that ssh reaches");
  flags.Number("--join-timeout-s", join.timeout_s, 0.1, 86400,
               "seconds within which all agents must be there");
}

Result<cluster::JoinedAgents> JoinAndSay(const cluster::JoinOptions& join, const Clock& clock,
                                         const Console& console, const std::stop_token& stop) {
  cluster::JoinedAgents agents = TRY(cluster::JoinAgents(join, clock, stop));
  console.Text(cluster::HostsText(agents.cluster->hosts()));
  agents.cluster->OnLoss([&console](const std::string& lost) {
    console.Note("lost " + EscapeForTerminal(lost) + "; the other hosts end their run");
  });
  return agents;
}

cluster::Message ArgumentsMessage() {
  Json arguments = Json::array();
  for (size_t i = 2; i < CommandLine().size(); ++i) arguments.push_back(EscapeBytes(CommandLine()[i]));
  return {.body = {{"arguments", arguments}}, .block = ""};
}

Result<std::vector<std::string>> ArgumentsIn(const cluster::Message& request) {
  std::vector<std::string> arguments;
  const auto list = request.body.find("arguments");
  if (list == request.body.end() || !list->is_array())
    return Fail(ErrorCode::kCorrupt, "the call has no arguments");
  for (const Json& argument : *list) {
    if (!argument.is_string()) return Fail(ErrorCode::kCorrupt, "an argument is no text");
    arguments.push_back(TRY(UnescapeBytes(argument.get<std::string>())));
  }
  return arguments;
}

}  // namespace weir::cli
