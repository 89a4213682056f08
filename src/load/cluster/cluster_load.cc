#include "load/cluster/cluster_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "load/cluster/host_run.h"
#include "load/cluster/load_agent.h"
#include "load/cluster/timed_watch.h"
#include "load/session/balance.h"
#include "load/session/load_session.h"
#include "load/verdict/level_verdict.h"

namespace weir::load {
namespace {

constexpr Duration kAhead = 150ms;  // of the start, so that every host knows of it in time

double ValueOf(const Level& level) {
  if (const auto* closed = std::get_if<Concurrency>(&level.scenario)) return closed->in_flight;
  return std::get<Rate>(level.scenario).per_second;
}

std::vector<HostPart> PartsOf(const std::vector<cluster::Host>& hosts) {
  std::vector<HostPart> parts;
  for (const cluster::Host& host : hosts) {
    HostPart part{.name = host.name, .rank = static_cast<int>(parts.size())};
    if (host.clock) {
      part.clock_offset = host.clock->offset;
      part.clock_error = host.clock->error;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

void AddRun(const HostRun& run, HostPart& part) {
  part.tally.Merge(run.played.tally);
  const double before = part.throughput * part.measured_s;
  part.measured_s += run.played.measured_s;
  part.cpu_s += run.played.cpu_s;
  if (part.measured_s > 0)
    part.throughput = (before + run.played.throughput() * run.played.measured_s) / part.measured_s;
  const Claims claims = Judge(run.played, run.environment);
  MergeVerdict(part.claims.throughput, claims.throughput);
  MergeVerdict(part.claims.latency, claims.latency);
}

std::optional<double> RateOf(const Level& level) {
  const auto* open = std::get_if<Rate>(&level.scenario);
  return open ? std::optional(open->per_second) : std::nullopt;
}

void AddRepeat(const std::vector<HostRun>& runs, LevelResult& result) {
  RunOutcome merged = MergeRuns(runs);
  const Claims claims = JudgeRuns(runs, merged, RateOf(result.level));
  MergeVerdict(result.claims.throughput, claims.throughput);
  MergeVerdict(result.claims.latency, claims.latency);
  result.server += MergeTotals(runs);
  for (const HostRun& run : runs) AddCalls(run.calls, result.calls);
  if (const auto share = MergeShares(runs))
    result.server_share = result.server_share.value_or(ServerShare{}) += *share;
  result.tally.Merge(merged.tally);
  result.measured_s += merged.measured_s;
  result.cpu_s += merged.cpu_s;
  result.spin_s += merged.spin_s;
  result.repeats.push_back(std::move(merged));
}

std::vector<cluster::Message> TasksFor(const std::vector<cluster::Host>& hosts, HostTask task,
                                       Instant begin) {
  std::vector<cluster::Message> tasks;
  for (const cluster::Host& host : hosts) {
    task.begin = host.clock ? host.clock->There(begin) : begin;
    tasks.push_back({.body = task.ToJson(), .block = ""});
  }
  return tasks;
}

// The server of a level, and how it is watched.
struct Watched {
  const LoadOptions& options;
  const monitor::ServerAccess& access;
};

// Plays one repeat. Returns the runs of the hosts that are left.
Result<std::vector<HostRun>> PlayRepeat(cluster::Cluster& hosts, const HostTask& task, const Watched& watched,
                                        LevelResult& result, const Clock& clock,
                                        const std::stop_token& stop) {
  (void)hosts.Synchronise();  // a loss shows below
  const std::vector<cluster::Host> known = hosts.hosts();
  if (result.hosts.empty()) result.hosts = PartsOf(known);
  Duration slowest{};
  for (const cluster::Host& host : known)
    if (host.clock) slowest = std::max(slowest, host.clock->error);
  const Instant begin = clock.Now() + kAhead + 4 * slowest;
  std::optional<TimedWatch> watch;
  if (watched.options.server.any()) {
    const Instant from = begin + FromSeconds(watched.options.warm_up_s);
    watch.emplace(watched.options.server, watched.access, from,
                  task.requests > 0 ? Instant::max() : from + task.length, clock);
  }
  auto answers = hosts.CallAll(kPlayVerb, TasksFor(known, task, begin), stop);
  if (watch) result.server_resources = TRY(watch->Stop());
  const std::vector<cluster::Host> after = hosts.hosts();
  std::vector<HostRun> runs;
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    HostPart& part = result.hosts[rank];
    part.lost = after[rank].lost;
    if (part.lost || (!answers[rank] && answers[rank].error().code == ErrorCode::kCancelled)) continue;
    if (!answers[rank]) return Context(fmt::format("{} (rank {})", part.name, rank), answers[rank].error());
    runs.push_back(TRY_CONTEXT(HostRunFrom(*answers[rank]), part.name));
    AddRun(runs.back(), part);
  }
  return runs;
}

}  // namespace

Status CheckHosts(const LoadOptions& options) {
  const auto refuse = [](const char* flag, const char* why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} goes with one host: {}", flag, why));
  };
  if (!options.samples.empty()) return refuse("--samples", "each host's requests stay on it");
  if (options.splits_responses()) return refuse("--split response", "leave it out");
  if (options.scenario) return refuse("--scenario", "MLPerf's rules know one generator");
  if (!options.trace.empty()) return refuse("--trace", "its parts are of one host");
  if (options.shared_memory != infer::SharedMemory::kNone)
    return refuse("--shared-memory", "memory is shared with a server on the same machine alone");
  return {};
}

Result<LevelResult> PlayOnHosts(cluster::Cluster& hosts, const LoadOptions& options, const Level& level,
                                const LevelLength& length, Seed seed, const monitor::ServerAccess& access,
                                const Clock& clock, const std::stop_token& stop) {
  for (int rank = 0; rank < hosts.world(); ++rank)
    TRY_STATUS(ShareOf(level.scenario, length.requests, rank, hosts.world()));
  LevelResult result;
  result.level = level;
  std::string lost;
  for (int repeat = 0; repeat < length.repeats && lost.empty() && !stop.stop_requested(); ++repeat) {
    const HostTask task{.value = ValueOf(level),
                        .length = length.length,
                        .requests = length.requests,
                        .seed = seed.Stream(static_cast<uint64_t>(repeat)).value()};
    const std::vector<HostRun> runs = TRY(PlayRepeat(hosts, task, {options, access}, result, clock, stop));
    lost = hosts.LostText();
    if (!runs.empty())
      AddRepeat(runs, result);
    else if (!lost.empty())
      return Fail(ErrorCode::kIo, "no host has a result; lost: " + lost);
  }
  JudgeLevel(options, result);
  if (!lost.empty()) {
    for (results::Verdict* claim : {&result.claims.throughput, &result.claims.latency})
      claim->Add(results::Standing::kInvalid, {results::Reason::kHostLost, lost});
  }
  return result;
}

}  // namespace weir::load
