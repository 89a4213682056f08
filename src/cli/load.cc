#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/file.h"
#include "cli/cluster_flags.h"
#include "cli/load_flags.h"
#include "cli/run_verb.h"
#include "cli/server_place.h"
#include "cluster/join.h"
#include "load/cluster/cluster_load.h"
#include "load/session/load_result.h"
#include "load/session/load_session.h"
#include "load/session/load_text.h"
#include "load/validate/validate.h"
#include "load/validate/validate_text.h"
#include "results/check_results.h"

namespace weir::cli {
namespace {

int ExitOf(const load::LoadSummary& result) {
  if (result.interrupted) return kInterrupted;
  return load::MeetsClaim(result.options, result.outcome) ? kDone : kClaimInvalid;
}

Result<int> ValidateFile(const LoadFlags& flags) {
  TRY_STATUS(CheckFlags(flags));
  const Console console(flags.json);
  TRY_STATUS(console.CheckJson());
  const Json stored = TRY_CONTEXT(ParseJson(TRY(ReadTextFile(flags.validate))), flags.validate);
  const std::vector<load::Finding> findings = TRY_CONTEXT(load::Validate(stored), flags.validate);
  const results::ValidateResult result = load::MakeValidateResult(findings);
  console.Text(load::ValidateText(result, flags.validate));
  TRY_STATUS(console.Json(result.ToJson()));
  return result.keeps_the_rules ? kDone : kClaimInvalid;
}

// Checks the files that are written when the run is over.
Status CheckOutputs(const LoadFlags& flags, const Console& console) {
  TRY_STATUS(console.CheckJson());
  TRY_STATUS(CheckOutput("-f", flags.csv));
  TRY_STATUS(CheckOutput("--samples", flags.samples));
  const std::pair<const char*, std::string> files[] = {
      {"--json", flags.json}, {"-f", flags.csv}, {"--samples", flags.samples}};
  for (const auto& [flag, file] : files) {
    for (const auto& [other, same] : files) {
      if (!file.empty() && flag != other && file == same)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} and {} both name {}: give each a file of its own", flag, other, file));
    }
  }
  return {};
}

// A server that does nothing stands for a model's server; nothing can stand for an --endpoint.
load::SessionHooks MakeSessionHooks(const LoadFlags& flags, const load::Target& target,
                                    std::vector<infer::Request> probe, const Clock& clock, Console& console,
                                    const std::stop_token& stop) {
  load::SessionHooks hooks{.note = [&](const std::string& line) { console.Note(line); },
                           .progress = {},
                           .progress_ended = [&] { console.EndProgress(); },
                           .measure_ceiling = {},
                           .server = MakeServerAccess(clock)};
  hooks.progress = [&](const load::Level& level, const load::Progress& p) {
    console.Progress(p.elapsed_s, level.name, p.answered, 0, load::ProgressText(p));
  };
  if (target.protocol() != "in-process" && flags.endpoint.empty()) {
    hooks.measure_ceiling = [&, probe = std::move(probe)] {
      return load::MeasureCeiling(flags, target, probe, clock, stop);
    };
  }
  return hooks;
}

// Returns nullopt where this host plays alone. Says how well the clocks of the others are known.
Result<std::optional<cluster::JoinedAgents>> OpenAgents(const LoadFlags& flags, const Clock& clock,
                                                        const Console& console, const std::stop_token& stop) {
  if (!flags.join.any()) return std::nullopt;
  cluster::JoinedAgents agents = TRY(JoinAndSay(flags.join, clock, console, stop));
  TRY_STATUS(agents.cluster->CallAll(load::kOpenVerb,
                                     FlagsCall{.arguments = OwnArguments(), .state = {}}.ToMessage(), stop));
  return agents;
}

Result<int> RunLoad(LoadFlags& flags, const std::stop_token& stop) {
  TRY_STATUS(CheckFlags(flags));
  Console console(flags.json);
  TRY_STATUS(CheckOutputs(flags, console));
  const std::optional<load::MlperfLevel> mlperf = TRY(load::FindMlperf(flags));
  const std::vector<load::Level> levels = mlperf ? std::vector{mlperf->level} : TRY(load::LevelsOf(flags));
  const SteadyClock clock;
  const monitor::ServerAccess access = MakeServerAccess(clock);
  TRY_STATUS(monitor::FindServer(flags.server, access));
  const auto target = TRY(load::OpenTarget(flags, clock, load::MostInFlight(levels)));
  const auto note = [&](const std::string& line) { console.Note(line); };
  load::Requests requests;
  std::vector<infer::Request> probe;
  const auto agents = TRY(OpenAgents(flags, clock, console, stop));
  if (!agents) {
    requests = TRY(load::RequestsFor(flags, *target, note, clock));
    constexpr size_t kProbe = 64;  // requests before they are prepared, for the null server
    probe.assign(requests.pool.begin(),
                 requests.pool.begin() + static_cast<std::ptrdiff_t>(std::min(kProbe, requests.pool.size())));
    TRY_STATUS(target->Prepare(requests));
  }
  load::LoadSummary result{.options = flags,
                           .target = *target,
                           .verbose = flags.verbose,
                           .length = load::LengthOf(flags, levels),
                           .batch = flags.batch,
                           .outcome = {},
                           .ceiling = {}};
  console.Text(load::PlanText(console.style(), result));
  for (const std::string& line : load::PlanNotes(result, levels)) console.Note(line);
  load::LoadSession session(flags, *target, requests, clock,
                            MakeSessionHooks(flags, *target, std::move(probe), clock, console, stop), stop);
  TRY_STATUS(session.KeepSamples(levels));
  const load::RunLevelsHooks hooks{
      .play =
          [&](const load::Level& level, const load::LevelLength& length, int number, Seed seed) {
            return agents
                       ? load::PlayOnHosts(*agents->cluster, flags, level, length, seed, access, clock, stop)
                       : session.PlayLevel(level, length, number, seed);
          },
      .played =
          [&](const load::LevelResult& level) { console.Text(LevelText(console.style(), result, level)); },
      .note = note};
  if (flags.find_peak) {
    TRY_STATUS(load::FindPeak(flags, levels.front(), result.length, hooks, stop, result.outcome));
  } else {
    TRY_STATUS(load::PlayLevels(flags, levels, result.length, mlperf, hooks, stop, result.outcome));
  }
  result.interrupted = stop.stop_requested();
  result.ceiling = session.ceiling();
  console.Text(TableText(result) + CeilingText(result) + PeakText(console.style(), result));
  TRY_STATUS(session.Finish());
  const record::Provenance provenance = record::CollectProvenance({.command = CommandLine(),
                                                                   .seed = static_cast<uint64_t>(flags.seed),
                                                                   .libraries = target->Libraries()});
  TRY_STATUS(console.Json(load::MakeResult(result, provenance).ToJson()));
  if (!flags.csv.empty()) TRY_STATUS(WriteFileWhole(flags.csv, ResultCsv(result)));
  return ExitOf(result);
}

}  // namespace

int Load(const Arguments& arguments) {
  return RunVerb<LoadFlags>(arguments, ParseLoadFlags, [](LoadFlags& flags, const std::stop_token& stop) {
    return flags.validate.empty() ? RunLoad(flags, stop) : ValidateFile(flags);
  });
}

}  // namespace weir::cli
