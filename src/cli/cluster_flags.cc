#include "cli/cluster_flags.h"

#include "base/fields.h"
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
             "file with the token that all agents share; needed beyond this machine (default on loopback: "
             "the user's own)");
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

namespace {

constexpr size_t kMostArguments = 10'000;
constexpr int64_t kMostStepNs = 3600 * int64_t{1'000'000'000};

struct Form {
  std::vector<std::string> arguments;
  std::string state;
  int64_t step_ns = 0;
  int batch = 1;
};

template <typename F>
void Describe(F& fields, Described<F, Form>& form) {
  fields("arguments", form.arguments);
  fields("state", form.state);
  fields("step_ns", form.step_ns);
  fields("batch", form.batch);
  fields.Require(form.arguments.size() <= kMostArguments, "more arguments than a command has");
  fields.Require(form.step_ns >= 0 && form.step_ns <= kMostStepNs, "a step that is none");
  fields.Require(form.batch >= 1 && form.batch <= 65536, "a batch that is none");
}

}  // namespace

cluster::Message FlagsCall::ToMessage() const {
  Form form{.arguments = {}, .state = state, .step_ns = step.count(), .batch = batch};
  for (const std::string& argument : arguments) form.arguments.push_back(EscapeBytes(argument));
  return {.body = FieldsToJson(form), .block = ""};
}

Result<FlagsCall> FlagsCall::From(const cluster::Message& message) {
  const Form form = TRY(FieldsFromJson<Form>(message.body));
  FlagsCall call{.arguments = {}, .state = form.state, .step = Duration(form.step_ns), .batch = form.batch};
  for (const std::string& argument : form.arguments) call.arguments.push_back(TRY(UnescapeBytes(argument)));
  return call;
}

std::vector<std::string> OwnArguments() { return {CommandLine().begin() + 2, CommandLine().end()}; }

Status CheckPaths(const cluster::AllowedPaths& allowed, const std::vector<NamedPath>& paths) {
  for (const NamedPath& each : paths) TRY_STATUS(allowed.Check(each.flag, each.path));
  return {};
}

}  // namespace weir::cli
