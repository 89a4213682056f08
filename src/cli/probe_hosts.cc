#include "cli/probe_hosts.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/count.h"
#include "base/json.h"
#include "cli/cluster_flags.h"
#include "cluster/cluster.h"
#include "cluster/join.h"
#include "probe/storage_agent.h"
#include "probe/storage_owner.h"
#include "synth/pictures.h"

namespace weir::cli {
namespace {

using cluster::CallContext;
using cluster::Message;

constexpr char kArguments[] = "arguments", kBatch[] = "batch", kStep[] = "step_ns";

// The step time is the caller's, which may have measured it.
Result<probe::HostsPlan> PlanIn(const Message& request) {
  probe::StorageRequest flags;
  if (ParseStorageFlags(TRY(ArgumentsIn(request)), flags))
    return Fail(ErrorCode::kInvalidArgument, "this host's weir does not take these flags");
  TRY_STATUS(probe::CheckHostsRequest(flags));
  flags.join = {};
  TRY_STATUS(probe::CheckStorageRequest(flags));
  probe::StorageProfile profile = TRY(probe::DemandOf(flags, {}));
  profile.batch = static_cast<int>(TRY(GetInteger(request.body, kBatch)));
  profile.step = Duration(TRY(GetInteger(request.body, kStep)));
  return probe::HostsPlanOf(flags, profile, DrawPictures);
}

}  // namespace

Result<std::vector<std::string>> DrawPictures(Seed seed, int count) {
  std::vector<std::string> pictures;
  for (int i = 0; i < count; ++i) pictures.push_back(TRY(synth::DrawPicture(seed, i)).jpeg);
  return pictures;
}

void AddStorageVerbs(cluster::Verbs& verbs, const Clock& clock) {
  const auto agent = std::make_shared<probe::StorageAgent>(clock);
  verbs[probe::kStorageSpace] = [](const Message& request, CallContext& context) -> Result<Message> {
    return probe::StorageAgent::Space(TRY(PlanIn(request)), context);
  };
  verbs[probe::kStorageMake] = [agent](const Message& request, CallContext& context) -> Result<Message> {
    return agent->Make(TRY(PlanIn(request)), context);
  };
  verbs[probe::kStorageOpen] = [agent](const Message& request, CallContext& context) -> Result<Message> {
    return agent->Open(TRY(PlanIn(request)), request, context);
  };
  verbs[probe::kStoragePlay] = [agent](const Message& request, CallContext& context) {
    return agent->Play(request, context);
  };
  verbs[probe::kStorageDrop] = [agent](const Message&, CallContext&) { return agent->Drop(); };
}

Result<probe::HostsReport> ProbeStorageOnHosts(const Arguments& arguments, const probe::StorageRequest& flags,
                                               const probe::StorageProfile& profile, Console& console,
                                               const Clock& clock, const std::stop_token& stop) {
  const cluster::JoinedAgents agents = TRY(JoinAndSay(flags.join, clock, console, stop));
  Json request{{kArguments, Json::array()}, {kBatch, profile.batch}, {kStep, profile.step.count()}};
  for (const std::string& argument : arguments) request[kArguments].push_back(EscapeBytes(argument));
  const auto note_space = [&](const probe::SpaceThere& there) {
    for (const std::string& folder : there.foreign) console.Note(probe::ForeignText(folder));
    console.Note(fmt::format("{} writes {} to {}, of {} free; removed at the end",
                             agents.cluster->hosts().front().name, Size(static_cast<double>(there.bytes)),
                             EscapeBytes(flags.paths.front()), Size(static_cast<double>(there.free_bytes))));
  };
  const Instant begin = clock.Now();
  auto report = probe::ProbeTrainingOnHosts(
      *agents.cluster, request, TRY(probe::HostsPlanOf(flags, profile, DrawPictures)), note_space, clock,
      stop, [&](int runs, const probe::TrainRun& last) {
        console.Progress(Seconds(clock.Now() - begin), "runs", runs, 0,
                         fmt::format("{} accelerators on each host", last.accelerators));
      });
  console.EndProgress();
  return report;
}

}  // namespace weir::cli
