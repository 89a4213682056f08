#include "cli/agent.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster_flags.h"
#include "cli/console.h"
#include "cli/feed_flags.h"
#include "cli/flags.h"
#include "cli/load_flags.h"
#include "cli/probe_hosts.h"
#include "cluster/allowed_paths.h"
#include "cluster/serve_agent.h"
#include "load/cluster/cluster_load.h"
#include "load/cluster/load_agent.h"
#include "probe/feed/feed_agent.h"
#include "probe/network_data.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

using cluster::CallContext;
using cluster::Message;

void AddLoadVerbs(cluster::Verbs& verbs, const cluster::AllowedPaths& allowed, const Clock& clock) {
  auto agent = std::make_shared<load::LoadAgent>(clock);
  verbs[load::kOpenVerb] = [agent, allowed](const Message& request, CallContext&) -> Result<Message> {
    LoadFlags flags;
    if (ParseLoadFlags(TRY(FlagsCall::From(request)).arguments, flags))
      return Fail(ErrorCode::kInvalidArgument, "this host's weir does not take these flags");
    TRY_STATUS(CheckPaths(allowed, PathsOf(flags)));
    TRY_STATUS(CheckFlags(flags));
    TRY_STATUS(agent->Open(std::move(flags)));
    return Message();
  };
  verbs[load::kPlayVerb] = [agent](const Message& request, CallContext& context) -> Result<Message> {
    return agent->Play(TRY(load::HostTask::FromJson(request.body)), context);
  };
}

void AddFeedVerbs(cluster::Verbs& verbs, const cluster::AllowedPaths& allowed, const Clock& clock) {
  auto agent = std::make_shared<probe::FeedAgent>(clock);
  verbs[probe::kFeedOpen] = [agent, allowed](const Message& request,
                                             CallContext& context) -> Result<Message> {
    const FlagsCall call = TRY(FlagsCall::From(request));
    FeedFlags flags;
    if (ParseFeedFlags(call.arguments, flags))
      return Fail(ErrorCode::kInvalidArgument, "this host's weir does not take these flags");
    TRY_STATUS(CheckPaths(allowed, PathsOf(flags)));
    feed::BenchSetup setup = TRY(SetupOf(flags));
    setup.state = call.state;
    setup.bench.step = call.step;
    return agent->Open(std::move(setup), context);
  };
  verbs[probe::kFeedPlay] = [agent](const Message& request, CallContext& context) {
    return agent->Play(request, context);
  };
}

void AddNetworkVerbs(cluster::Verbs& verbs, const Clock& clock) {
  auto agent = std::make_shared<probe::NetworkAgent>(clock);
  verbs[probe::kNetworkOpen] = [agent](const Message&, CallContext& context) { return agent->Open(context); };
  verbs[probe::kNetworkTake] = [agent](const Message&, CallContext& context) { return agent->Take(context); };
}

}  // namespace

int Agent(const Arguments& arguments) {
  cluster::ServeAgentOptions options;
  std::vector<std::string> places;
  double timeout_s = 60;
  Flags flags(
      "agent",
      "One host's part of a load, a feed or a probe on several hosts. Runs nothing but weir's own verbs.",
      "weir agent --listen 127.0.0.1:7007");
  flags.Text("--listen", options.listen,
             "HOST:PORT to be called at; port 0 picks a free one, which is printed.");
  flags.Text("--rendezvous", options.rendezvous, "HOST:PORT of rank 0, which this agent calls.");
  flags.Text("--token-file", options.token_file,
             "File with the token that all share; needed beyond this machine (default on loopback: the "
             "user's own). "
             "-: the first line of standard input, whose end ends the agent.");
  flags.Repeated(
      "--allow-path", places,
      "Folder below which callers may name files; or a store, as s3://BUCKET/PREFIX; / for all. May "
      "be given again (default: none).");
  flags.Integer("--rank", options.rank, 0, 100'000,
                "Rank of this agent (default: from srun, mpirun, an Indexed Job, or RANK).");
  flags.Integer("--world", options.world, 1, 100'000, "Number of agents (default: from the same).");
  flags.Text("--name", options.name, "Name of this host in results (default: its host name).");
  flags.Switch("--once", options.once, "Ends with the first run.");
  flags.Number("--timeout-s", timeout_s, 0.1, 86400, "Seconds to try --rendezvous.");
  if (const auto status = flags.Parse(arguments)) return *status;
  const auto allowed = cluster::AllowedPaths::Make(places);
  if (!allowed) return FailWith(allowed.error());
  options.build = record::BuildDescription();
  options.timeout = FromSeconds(timeout_s);
  const Interrupt interrupt;
  static const SteadyClock clock;  // outlives a thread in a read that hangs
  const Console console("");
  const auto note = [&](const std::string& line) {
    console.Text(line + "\n");
    std::fflush(stdout);
  };
  const auto make_verbs = [&allowed = *allowed] {
    cluster::Verbs verbs;
    AddLoadVerbs(verbs, allowed, clock);
    AddFeedVerbs(verbs, allowed, clock);
    AddNetworkVerbs(verbs, clock);
    AddStorageVerbs(verbs, allowed, clock);
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
