#include "load/session/run_levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/count.h"
#include "load/verdict/judge.h"
#include "stats/early_stopping.h"

namespace weir::load {
namespace {

constexpr int kTries = 3;         // runs of one rate, at most
constexpr double kLongest = 600;  // seconds of a run: lower rates would take longer to decide

// Returns the requests that decide a percentile in one run.
double Deciding(double percentile) { return static_cast<double>(3 * stats::QueriesNeeded(percentile, 1)); }

LevelLength LengthAt(LevelLength length, double rate, double percentile, double factor) {
  length.length = FromSeconds(std::max(Seconds(length.length), Deciding(percentile) / rate) * factor);
  length.requests = 0;
  return length;
}

// Adds a level that was played.
const LevelResult& Keep(LevelResult level, const RunLevelsHooks& hooks, LevelsOutcome& outcome) {
  outcome.levels.push_back(std::move(level));
  if (hooks.played) hooks.played(outcome.levels.back());
  return outcome.levels.back();
}

void Note(const RunLevelsHooks& hooks, const std::string& line) {
  if (hooks.note) hooks.note(line);
}

// Plays one rate of the search until a run is not spoiled. Returns nullopt if every run was spoiled, or the
// user has stopped.
Result<std::optional<stats::Answer>> TryRate(const LoadOptions& options, Level level,
                                             const PeakSearch::Probe& probe, const LevelLength& length,
                                             const RunLevelsHooks& hooks, const std::stop_token& stop,
                                             LevelsOutcome& outcome) {
  const bool confirms = probe.kind == PeakSearch::Probe::Kind::kConfirm;
  std::get<Rate>(level.scenario).per_second = probe.rate;
  level.name =
      fmt::format("{} {:.6g}/s{}", ToString(options.distribution), probe.rate, confirms ? ", again" : "");
  const Seed seed = Seed(static_cast<uint64_t>(options.seed)).Stream("peak").Stream(probe.seed_index);
  for (int again = 0; again < kTries; ++again) {
    Note(hooks, fmt::format("{} {:.6g}/s for {:.3g} s{}", confirms ? "confirming" : "trying", probe.rate,
                            Seconds(length.length),
                            again > 0 ? ", for the run before says nothing of the system" : ""));
    const int number = static_cast<int>(outcome.levels.size());
    LevelResult played = TRY(hooks.play(level, length, number, seed.Stream(static_cast<uint64_t>(again))));
    if (stop.stop_requested()) return std::nullopt;
    const LevelResult& last = Keep(std::move(played), hooks, outcome);
    if (IsSpoiled(last.claims.latency, last.tally)) continue;
    // Beyond the system's capacity there is no latency to compare with the threshold.
    if (last.claims.latency.standing >= results::Standing::kInvalid) return stats::Answer::kNo;
    return last.below_threshold;
  }
  Note(hooks, fmt::format("the search ends at {:.6g}/s: {} runs of it were spoiled by the generator or the "
                          "machine (see their verdicts)",
                          probe.rate, kTries));
  return std::nullopt;
}

// Other clients' requests make a result none of MLPerf's.
MlperfResult JudgeMlperf(const LoadOptions& options, const MlperfLevel& mlperf, const LevelResult& level) {
  const double bound = options.latency_threshold_ms / 1e3;
  MlperfResult result = Judge(mlperf.rules, level.repeats.front(), options.batch,
                              bound > 0 ? std::optional(bound) : std::nullopt);
  if (level.server_share && IsShared(*level.server_share)) {
    result.valid = false;
    result.shortfalls.emplace_back("other clients used the server meanwhile");
  }
  return result;
}

}  // namespace

Status PlayLevels(const LoadOptions& options, const std::vector<Level>& levels, const LevelLength& length,
                  const std::optional<MlperfLevel>& mlperf, const RunLevelsHooks& hooks,
                  const std::stop_token& stop, LevelsOutcome& outcome) {
  const Seed seed(static_cast<uint64_t>(options.seed));
  for (const Level& level : levels) {
    if (stop.stop_requested()) break;
    LevelResult played = TRY(hooks.play(level, length, static_cast<int>(outcome.levels.size()), seed));
    if (mlperf && !played.repeats.empty()) played.mlperf = JudgeMlperf(options, *mlperf, played);
    const LevelResult& last = Keep(std::move(played), hooks, outcome);
    const auto left = static_cast<int64_t>(levels.size() - outcome.levels.size());
    if (last.below_threshold == stats::Answer::kNo && left > 0) {
      Note(hooks,
           fmt::format("{} left out: this one is not below --latency-threshold", Count(left, "level")));
      break;
    }
  }
  return {};
}

Status FindPeak(const LoadOptions& options, const Level& first, const LevelLength& length,
                const RunLevelsHooks& hooks, const std::stop_token& stop, LevelsOutcome& outcome) {
  const double start_rate = std::get<Rate>(first.scenario).per_second;
  const double percentile = options.judged_percentile();
  const double least = std::min(start_rate, Deciding(percentile) / kLongest);
  PeakSearch search = TRY(PeakSearch::Create({.start_rate = start_rate, .least = least}));
  while (const auto probe = search.Next()) {
    const LevelLength probe_length = LengthAt(length, probe->rate, percentile, probe->length_factor);
    const auto answer = TRY(TryRate(options, first, *probe, probe_length, hooks, stop, outcome));
    if (stop.stop_requested()) return {};
    if (!answer) {
      outcome.peak = PeakSearch::Outcome{};
      outcome.peak_spoiled = true;
      return {};
    }
    search.Tell(*answer);
  }
  outcome.peak = search.outcome();
  return {};
}

bool MeetsClaim(const LoadOptions& options, const LevelsOutcome& outcome) {
  if (outcome.peak) return outcome.peak->rate && outcome.peak->confirmed;
  const bool wants_target = options.latency_threshold_ms > 0;
  bool met = !wants_target, invalid = outcome.levels.empty();
  for (const LevelResult& level : outcome.levels) {
    const bool of_latency = wants_target || std::holds_alternative<Rate>(level.level.scenario);
    met |= level.below_threshold == stats::Answer::kYes;
    invalid |=
        (of_latency ? level.claims.latency : level.claims.throughput).standing >= results::Standing::kInvalid;
  }
  return met && !invalid;
}

}  // namespace weir::load
