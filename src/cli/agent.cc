#include "cli/agent.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/console.h"
#include "cli/flags.h"
#include "cluster/serve_agent.h"
#include "probe/network_data.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

using cluster::CallContext;
using cluster::Message;

void AddNetworkVerbs(cluster::Verbs& verbs, const Clock& clock) {
  auto agent = std::make_shared<probe::NetworkAgent>(clock);
  verbs[probe::kNetworkOpen] = [agent](const Message&, CallContext& context) { return agent->Open(context); };
  verbs[probe::kNetworkTake] = [agent](const Message&, CallContext& context) { return agent->Take(context); };
}

}  // namespace

int Agent(const Arguments& arguments) {
  cluster::ServeAgentOptions options;
  Flags flags("agent", "One host's part of a probe on several hosts. Runs nothing but weir's own verbs.",
              "weir agent --listen 127.0.0.1:7007");
  flags.Required("--listen", options.listen,
                 "HOST:PORT to be called at; port 0 picks a free one, which is printed.");
  flags.Text("--token-file", options.token_file,
             "File with the token that all share; needed beyond this machine, and encrypts. -: the first "
             "line of standard input, whose end ends the agent.");
  flags.Switch("--once", options.once, "Ends with the first run.");
  if (const auto status = flags.Parse(arguments)) return *status;
  options.build = record::BuildDescription();
  const Interrupt interrupt;
  static const SteadyClock clock;  // outlives a thread in a read that hangs
  const Console console("");
  const auto note = [&](const std::string& line) {
    console.Text(line + "\n");
    std::fflush(stdout);
  };
  const auto make_verbs = [] {
    cluster::Verbs verbs;
    AddNetworkVerbs(verbs, clock);
    return verbs;
  };
  const Status served = cluster::ServeAgent(
      options, [](const char* name) -> const char* { return std::getenv(name); }, make_verbs, note, clock,
      interrupt.token());
  if (served) return kDone;
  if (interrupt.token().stop_requested()) return kInterrupted;
  return FailWith(served.error());
}

}  // namespace weir::cli
