#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stop_token>
#include <utility>

#include "base/file.h"
#include "cli/console.h"
#include "cli/load_flags.h"
#include "cli/load_requests.h"
#include "cli/load_result.h"
#include "cli/load_session.h"
#include "cli/load_target.h"
#include "cli/verbs.h"
#include "load/validate/validate.h"
#include "load/verdict/mlperf.h"
#include "stats/early_stopping.h"

namespace weir::cli {
namespace {

int ExitOf(const LoadResult& result) {
  if (result.interrupted) return kInterrupted;
  if (result.peak) return result.peak->rate && result.peak->confirmed ? kDone : kClaimInvalid;
  const bool wants_target = result.flags.latency_threshold_ms > 0;
  bool met = !wants_target, invalid = result.levels.empty();
  for (const LevelResult& level : result.levels) {
    const bool of_latency = wants_target || std::holds_alternative<load::Rate>(level.level.scenario);
    met |= level.below_threshold == stats::Answer::kYes;
    invalid |=
        (of_latency ? level.claims.latency : level.claims.throughput).standing >= record::Standing::kInvalid;
  }
  return met && !invalid ? kDone : kClaimInvalid;
}

int MostInFlight(const std::vector<LoadLevel>& levels) {
  int most = 1;
  for (const LoadLevel& level : levels) {
    if (const auto* closed = std::get_if<load::Concurrency>(&level.scenario))
      most = std::max(most, closed->in_flight);
    if (const auto* open = std::get_if<load::Rate>(&level.scenario))
      most = std::max(most, open->most_in_flight);
  }
  return most;
}

// A scenario of MLPerf's as something to play.
struct Mlperf {
  load::MlperfRules rules;
  LoadLevel level;
};
// Puts the scenario's batch and length into `flags` where they say nothing of them.
Result<std::optional<Mlperf>> FindMlperf(LoadFlags& flags) {
  if (flags.scenario.empty()) return std::nullopt;
  const load::MlperfScenario scenario = TRY(load::ParseMlperfScenario(flags.scenario));
  load::MlperfRules rules = TRY(load::RulesOf(scenario, {.rate = flags.target_rate, .depth = flags.depth}));
  if (rules.samples_per_query > 1 && flags.batch == 1) flags.batch = rules.samples_per_query;
  if (flags.duration_s == 0 && flags.request_count == 0) flags.duration_s = Seconds(rules.min_duration);
  if (rules.percentile && flags.percentile == 0) flags.percentile = 100 * *rules.percentile;
  LoadLevel level{.scenario = rules.play, .name = flags.scenario};
  return Mlperf{std::move(rules), std::move(level)};
}

// Requests that decide a percentile in one run.
double Deciding(double percentile) { return static_cast<double>(3 * stats::QueriesNeeded(percentile, 1)); }

LoadLength LengthAt(LoadLength length, double rate, double percentile, double factor) {
  length.length = FromSeconds(std::max(Seconds(length.length), Deciding(percentile) / rate) * factor);
  length.requests = 0;
  return length;
}

// One answer of the search, from a run that speaks of the system; the levels are all that was played for it.
// Nothing: every run was spoiled, or the user has stopped.
Result<std::optional<stats::Answer>> TryRate(const LoadFlags& flags, LoadLevel level,
                                             const load::PeakSearch::Probe& probe, const LoadLength& length,
                                             LoadSession& session, Console& console,
                                             const std::stop_token& stop, LoadResult& result) {
  constexpr int kTries = 3;
  const bool confirms = probe.kind == load::PeakSearch::Probe::Kind::kConfirm;
  std::get<load::Rate>(level.scenario).per_second = probe.rate;
  level.name = fmt::format("{} {:.6g}/s{}", flags.distribution, probe.rate, confirms ? ", again" : "");
  const Seed seed = Seed(static_cast<uint64_t>(flags.seed)).Stream("peak").Stream(probe.seed_index);
  for (int again = 0; again < kTries; ++again) {
    console.Note(fmt::format("{} {:.6g}/s for {:.3g} s{}", confirms ? "confirming" : "trying", probe.rate,
                             Seconds(length.length),
                             again > 0 ? ", for the run before says nothing of the system" : ""));
    const int number = static_cast<int>(result.levels.size());
    LevelResult played =
        TRY(session.PlayLevel(level, length, number, seed.Stream(static_cast<uint64_t>(again))));
    if (stop.stop_requested()) return std::nullopt;
    result.levels.push_back(std::move(played));
    const LevelResult& last = result.levels.back();
    console.Text(LevelText(console, result, last));
    if (load::IsSpoiled(last.claims.latency, last.tally)) continue;
    // Beyond what the system can do there is no latency to hold against the bound.
    if (last.claims.latency.standing >= record::Standing::kInvalid) return stats::Answer::kNo;
    return last.below_threshold;
  }
  console.Note(
      fmt::format("the search ends at {:.6g}/s: {} runs of it were spoiled by the generator or the machine "
                  "(see their verdicts)",
                  probe.rate, kTries));
  return std::nullopt;
}

Status FindPeak(const LoadFlags& flags, const LoadLevel& first, LoadSession& session, Console& console,
                const std::stop_token& stop, LoadResult& result) {
  constexpr double kLongest = 600;  // seconds of a run: lower rates would take longer to decide
  const double start_rate = std::get<load::Rate>(first.scenario).per_second;
  const double percentile = flags.percentile > 0 ? flags.percentile / 100 : 0.5;
  const double least = std::min(start_rate, Deciding(percentile) / kLongest);
  load::PeakSearch search = TRY(load::PeakSearch::Create({.start_rate = start_rate, .least = least}));
  while (const auto probe = search.Next()) {
    const LoadLength length = LengthAt(result.length, probe->rate, percentile, probe->length_factor);
    const auto answer = TRY(TryRate(flags, first, *probe, length, session, console, stop, result));
    if (stop.stop_requested()) return {};
    if (!answer) {
      result.peak = load::PeakSearch::Outcome{};
      result.peak_spoiled = true;
      return {};
    }
    search.Tell(*answer);
  }
  result.peak = search.outcome();
  return {};
}

Status PlayLevels(const LoadFlags& flags, const std::vector<LoadLevel>& levels,
                  const std::optional<Mlperf>& mlperf, LoadSession& session, Console& console,
                  const std::stop_token& stop, LoadResult& result) {
  const Seed seed(static_cast<uint64_t>(flags.seed));
  for (const LoadLevel& level : levels) {
    if (stop.stop_requested()) break;
    LevelResult played =
        TRY(session.PlayLevel(level, result.length, static_cast<int>(result.levels.size()), seed));
    if (mlperf && !played.repeats.empty()) {
      const double bound = flags.latency_threshold_ms / 1e3;
      played.mlperf = load::Judge(mlperf->rules, played.repeats.front(), flags.batch,
                                  bound > 0 ? std::optional(bound) : std::nullopt);
      if (played.server_share && load::IsShared(*played.server_share)) {
        played.mlperf->valid = false;
        played.mlperf->shortfalls.emplace_back("other clients used the server meanwhile");
      }
    }
    result.levels.push_back(std::move(played));
    console.Text(LevelText(console, result, result.levels.back()));
    const size_t left = levels.size() - result.levels.size();
    if (result.levels.back().below_threshold == stats::Answer::kNo && left > 0) {
      console.Note(fmt::format("{} left out: this one is not below --latency-threshold",
                               Count(static_cast<int64_t>(left), "level")));
      break;
    }
  }
  return {};
}

Result<int> ValidateFile(const LoadFlags& flags) {
  TRY_STATUS(CheckFlags(flags));
  const Console console(flags.json);
  TRY_STATUS(console.CheckJson());
  const Json stored = TRY_CONTEXT(ParseJson(TRY(ReadTextFile(flags.validate))), flags.validate);
  const std::vector<load::Finding> findings = TRY_CONTEXT(load::Validate(stored), flags.validate);
  Json json = Json::array();
  bool fatal = false;
  for (const load::Finding& finding : findings) {
    fatal |= finding.fatal;
    console.Text(fmt::format("{} {}{}{}: {}\n", finding.fatal ? "FAULT" : "note ", finding.where,
                             finding.where.empty() ? "" : " ", finding.rule, finding.what));
    json.push_back(
        {{"rule", finding.rule}, {"where", finding.where}, {"what", finding.what}, {"fatal", finding.fatal}});
  }
  console.Text(fmt::format("{}: {}\n", flags.validate, fatal ? "it breaks the rules" : "it keeps the rules"));
  TRY_STATUS(console.Json({{"findings", std::move(json)}, {"keeps_the_rules", !fatal}}));
  return fatal ? kClaimInvalid : kDone;
}

// Of what is written when the run is over.
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

Result<int> RunLoad(LoadFlags& flags, const std::stop_token& stop) {
  TRY_STATUS(CheckFlags(flags));
  Console console(flags.json);
  TRY_STATUS(CheckOutputs(flags, console));
  const std::optional<Mlperf> mlperf = TRY(FindMlperf(flags));
  const std::vector<LoadLevel> levels = mlperf ? std::vector{mlperf->level} : TRY(LevelsOf(flags));
  const SteadyClock clock;
  TRY_STATUS(FindServer(flags.server, clock));
  const std::unique_ptr<LoadTarget> target = TRY(OpenLoadTarget(flags, clock, MostInFlight(levels)));
  load::Requests requests = TRY(MakeRequests(flags, *target, console, clock));
  constexpr size_t kProbe = 64;
  std::vector<infer::Request> probe(
      requests.pool.begin(),
      requests.pool.begin() + static_cast<std::ptrdiff_t>(std::min(kProbe, requests.pool.size())));
  TRY_STATUS(target->Prepare(requests));
  LoadResult result{.flags = flags,
                    .target = *target,
                    .length = LengthOf(flags),
                    .batch = flags.batch,
                    .levels = {},
                    .peak = {},
                    .ceiling = {}};
  console.Text(fmt::format(
      "{}, {}\n", console.Bold(target->Title()),
      result.length.requests > 0
          ? fmt::format("{} requests a level", Count(result.length.requests))
          : fmt::format("{:g} s a level", Seconds(result.length.length) * result.length.repeats)));
  if (!result.length.note.empty()) console.Note(result.length.note);
  const bool waits = std::ranges::any_of(levels, [&](const LoadLevel& level) {
    const auto* closed = std::get_if<load::Concurrency>(&level.scenario);
    return closed && flags.connections > 0 && flags.connections < closed->in_flight;
  });
  if (waits) {
    console.Note(
        fmt::format("no more than {} of the requests in flight are on their way: the others wait for a "
                    "connection, which their response times tell, as slip",
                    flags.connections));
  }
  LoadSession session(flags, *target, requests, std::move(probe), clock, console, stop);
  TRY_STATUS(session.KeepSamples(levels));
  if (flags.find_peak) {
    TRY_STATUS(FindPeak(flags, levels.front(), session, console, stop, result));
  } else {
    TRY_STATUS(PlayLevels(flags, levels, mlperf, session, console, stop, result));
  }
  result.interrupted = stop.stop_requested();
  result.ceiling = session.ceiling();
  console.Text(TableText(result) + CeilingText(result) + PeakText(console, result));
  TRY_STATUS(session.Finish());
  const record::Provenance provenance = record::CollectProvenance({.command = CommandLine(),
                                                                   .seed = static_cast<uint64_t>(flags.seed),
                                                                   .libraries = target->Libraries()});
  TRY_STATUS(console.Json(ResultJson(result, provenance)));
  if (!flags.csv.empty()) TRY_STATUS(WriteFileWhole(flags.csv, ResultCsv(result)));
  return ExitOf(result);
}

}  // namespace

int Load(const Arguments& arguments) {
  LoadFlags flags;
  if (const auto status = ParseLoadFlags(arguments, flags)) return *status;
  const Interrupt interrupt;
  const Result<int> status = flags.validate.empty() ? RunLoad(flags, interrupt.token()) : ValidateFile(flags);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
