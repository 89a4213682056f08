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

// The step time is the caller's, which may have measured it.
Result<probe::HostsPlan> PlanIn(const Message& request, const cluster::AllowedPaths& allowed) {
  const FlagsCall call = TRY(FlagsCall::From(request));
  probe::StorageRequest flags;
  if (ParseStorageFlags(call.arguments, flags))
    return Fail(ErrorCode::kInvalidArgument, "this host's weir does not take these flags");
  TRY_STATUS(probe::CheckHostsRequest(flags));
  flags.join = {};
  std::vector<NamedPath> paths{{"--set", flags.set}};
  for (const std::string& path : flags.paths) paths.push_back({"PATH", path});
  if (const auto made = GetString(request.body, probe::kSetFolder))
    paths.push_back({"the set in", TRY(UnescapeBytes(*made))});
  TRY_STATUS(CheckPaths(allowed, paths));
  TRY_STATUS(probe::CheckStorageRequest(flags));
  probe::StorageProfile profile = TRY(probe::DemandOf(flags, {}));
  profile.batch = call.batch;
  profile.step = call.step;
  return probe::HostsPlanOf(flags, profile, DrawPictures);
}

}  // namespace

Result<std::vector<std::string>> DrawPictures(Seed seed, int count) {
  std::vector<std::string> pictures;
  for (int i = 0; i < count; ++i) pictures.push_back(TRY(synth::DrawPicture(seed, i)).jpeg);
  return pictures;
}

void AddStorageVerbs(cluster::Verbs& verbs, const cluster::AllowedPaths& allowed, const Clock& clock) {
  const auto agent = std::make_shared<probe::StorageAgent>(clock);
  verbs[probe::kStorageSpace] = [allowed](const Message& request, CallContext& context) -> Result<Message> {
    return probe::StorageAgent::Space(TRY(PlanIn(request, allowed)), context);
  };
  verbs[probe::kStorageMake] = [agent, allowed](const Message& request,
                                                CallContext& context) -> Result<Message> {
    return agent->Make(TRY(PlanIn(request, allowed)), context);
  };
  verbs[probe::kStorageOpen] = [agent, allowed](const Message& request,
                                                CallContext& context) -> Result<Message> {
    return agent->Open(TRY(PlanIn(request, allowed)), request, context);
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
  const FlagsCall call{.arguments = arguments, .state = {}, .step = profile.step, .batch = profile.batch};
  const auto note_space = [&](const probe::SpaceThere& there) {
    for (const std::string& folder : there.foreign) console.Note(probe::ForeignText(folder));
    console.Note(fmt::format("{} writes {} to {}, of {} free; removed at the end",
                             agents.cluster->hosts().front().name, Size(static_cast<double>(there.bytes)),
                             EscapeBytes(flags.paths.front()), Size(static_cast<double>(there.free_bytes))));
  };
  const Instant begin = clock.Now();
  auto report = probe::ProbeTrainingOnHosts(
      *agents.cluster, call.ToMessage().body, TRY(probe::HostsPlanOf(flags, profile, DrawPictures)),
      note_space, clock, stop, [&](int runs, const probe::TrainRun& last) {
        console.Progress(Seconds(clock.Now() - begin), "runs", runs, 0,
                         fmt::format("{} accelerators on each host", last.accelerators));
      });
  console.EndProgress();
  return report;
}

}  // namespace weir::cli
