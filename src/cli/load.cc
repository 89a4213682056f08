#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/file.h"
#include "cli/console.h"
#include "cli/load_flags.h"
#include "cli/load_result.h"
#include "cli/load_target.h"
#include "cli/verbs.h"
#include "data/recipe.h"
#include "load/input_data.h"
#include "load/picture_requests.h"
#include "load/requests.h"
#include "load/sample_file.h"
#include "load/validate.h"

namespace weir::cli {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

Result<data::Recipe> FindRecipe(const LoadFlags& flags, const LoadTarget& target) {
  if (!flags.recipe.empty()) return data::ReadRecipe(flags.recipe);
  const auto told = target.info().parameters.find("recipe");
  if (told == target.info().parameters.end())
    return Invalid(
        "--data are pictures, and the model tells no recipe: say with --recipe FILE how they become its "
        "input");
  return data::ParseRecipe(told->second, "");
}

Result<load::Requests> PictureRequests(const LoadFlags& flags, const LoadTarget& target,
                                       const Console& console) {
  const data::Recipe recipe = TRY(FindRecipe(flags, target));
  load::PictureOptions options{.batch = flags.batch, .pool_limit = flags.pool};
  if (flags.payload == "pixels") options.payload = load::Payload::kPixels;
  if (flags.payload == "image") options.payload = load::Payload::kImage;
  auto made = TRY(load::MakePictureRequests(target.info(), target.version(), recipe, flags.data, options));
  console.Note(fmt::format("{} of {}; {} rejected, {} left out", Count(std::ssize(made.requests), "request"),
                           Count(made.files, "picture"), Count(made.rejected), Count(made.left_out)));
  return load::Requests{.pool = std::move(made.requests), .expected = {}};
}

Result<load::Requests> MakeRequests(const LoadFlags& flags, const LoadTarget& target,
                                    const Console& console) {
  if (!flags.data.empty()) return PictureRequests(flags, target, console);
  if (flags.payload != "tensor")
    return Invalid(fmt::format("--payload {} sends pictures: name them with --data", flags.payload));
  load::RequestOptions options{
      .batch = flags.batch,
      .shapes = TRY(ParseShapes(flags.shapes)),
      .fill = flags.zero_input ? load::RequestOptions::Fill::kZero : load::RequestOptions::Fill::kRandom,
      .pool = flags.pool,
      .string_data = flags.string_data,
      .string_length = flags.string_length,
      .seed = Seed(static_cast<uint64_t>(flags.seed)).Stream("data"),
      .outputs = {}};
  if (flags.input_data.size() > 1) return Invalid("--input-data is given once");
  const std::string source = flags.input_data.empty() ? "random" : flags.input_data.front();
  if (source == "random" || source == "zero") {
    if (source == "zero") options.fill = load::RequestOptions::Fill::kZero;
    if (flags.check)
      return Invalid("--check needs answers to expect: the validation_data of an --input-data file");
    return load::Requests{.pool = TRY(load::MakeRequests(target.info(), target.version(), options)),
                          .expected = {}};
  }
  load::InputData data;
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) {
    data = TRY(load::ReadInputFolder(source, target.info(), target.version(), options));
  } else {
    data = TRY_CONTEXT(
        load::ReadInputData(TRY(ReadTextFile(source)), target.info(), target.version(), options), source);
  }
  if (flags.check && data.expected.empty())
    return Invalid(fmt::format("--check: {} says nothing of the answers (validation_data)", source));
  if (!flags.check) data.expected.clear();
  return load::Requests{.pool = std::move(data.requests), .expected = std::move(data.expected)};
}

// The worse of two, with the reasons of both; of each reason the first evidence.
void Join(record::Verdict& sum, const record::Verdict& more) {
  for (const record::Cause& cause : more.causes) {
    if (std::ranges::find(sum.causes, cause.reason, &record::Cause::reason) == sum.causes.end())
      sum.causes.push_back(cause);
  }
  sum.standing = std::max(sum.standing, more.standing);
}

class Session {
 public:
  Session(const LoadFlags& flags, LoadTarget& target, const load::Requests& requests, const Clock& clock,
          Console& console, const std::stop_token& stop)
      : flags_(flags),
        target_(target),
        requests_(requests),
        clock_(clock),
        console_(console),
        stop_(stop),
        cpus_(static_cast<int>(std::thread::hardware_concurrency())) {}

  // `number`: of the level, from 0. `seed`: another one for each run that is to be a fresh one.
  Result<LevelResult> PlayLevel(const LoadLevel& level, const LoadLength& length, int number, Seed seed);
  Status KeepSamples(const std::vector<LoadLevel>& levels);
  Status Finish() { return samples_ ? samples_->Finish() : Status{}; }

 private:
  Result<load::Played> PlayOnce(LevelResult& result, const LoadLength& length, int number, int repeat,
                                Seed seed);
  load::Surroundings SurroundingsOf(const LevelResult& result) const;
  void JudgeSpread(LevelResult& result) const;
  void AnswerThreshold(LevelResult& result) const;

  const LoadFlags& flags_;
  LoadTarget& target_;
  const load::Requests& requests_;
  const Clock& clock_;
  Console& console_;
  const std::stop_token& stop_;
  const int cpus_;
  std::unique_ptr<load::SampleFile> samples_;
};

Status Session::KeepSamples(const std::vector<LoadLevel>& levels) {
  if (flags_.samples.empty()) return {};
  Json about = {{"model", EscapeBytes(target_.info().name)}, {"levels", Json::array()}};
  for (const LoadLevel& level : levels) about["levels"].push_back(level.name);
  samples_ =
      TRY(load::SampleFile::Create(flags_.samples, {.start = clock_.Now(), .about = std::move(about)}));
  return {};
}

// A timeout too short for the clock is still one.
Duration TimeoutOf(const LoadFlags& flags) {
  const double ms = flags.request_timeout_ms;
  return ms > 0 ? std::max(Duration(1us), FromSeconds(ms / 1e3)) : Duration{};
}

Result<load::Played> Session::PlayOnce(LevelResult& result, const LoadLength& length, int number, int repeat,
                                       Seed seed) {
  load::PlayOptions options{.scenario = result.level.scenario,
                            .warm_up = FromSeconds(flags_.warm_up_s),
                            .warm_up_requests = flags_.warm_up_requests,
                            .length = length.length,
                            .requests = length.requests,
                            .timeout = TimeoutOf(flags_)};
  options.seed = seed.Stream(static_cast<uint64_t>(repeat));
  std::optional<infer::PhaseTotals> before;
  std::unique_ptr<monitor::ResourceMonitor> own, server;
  Status watching;
  load::PlayHooks hooks;
  if (target_.is_driven()) hooks.drive = [&](Instant until) { return target_.Drive(until); };
  hooks.give_up = [&] { target_.GiveUp(); };
  const bool warms_up = options.warm_up > Duration{} || options.warm_up_requests > 0;
  if (!warms_up) before = target_.Statistics();  // a short run may be over before it is asked
  hooks.measuring = [&] {
    if (warms_up) before = target_.Statistics();
    auto monitor = monitor::ResourceMonitor::Start(clock_, {});
    if (monitor) own = *std::move(monitor);
    if (flags_.server_pids.empty()) return;
    auto other = monitor::ResourceMonitor::Start(clock_, {.processes = flags_.server_pids});
    if (other)
      server = *std::move(other);
    else
      watching = std::unexpected(other.error());
  };
  hooks.measured = [&] {
    if (own) result.resources = own->Stop();
    if (server) result.server_resources = server->Stop();
    const auto after = target_.Statistics();
    // A server that was loaded anew meanwhile counts from 0.
    if (before && after && after->success.count >= before->success.count) result.server += *after - *before;
  };
  Status kept;
  if (samples_) {
    hooks.samples = [&](std::span<const load::Sample> samples) {
      if (kept) kept = samples_->Write(number, repeat, samples);
    };
  }
  hooks.progress = [&](const load::Progress& p) {
    console_.Progress(p.elapsed_s, result.level.name, p.answered, 0,
                      fmt::format(", {}/s{}{}", Short(p.rate),
                                  p.p99 ? fmt::format(", p99 {} ms", Short(Milliseconds(*p.p99))) : "",
                                  p.failed > 0 ? fmt::format(", {} failed", Count(p.failed)) : ""));
  };
  Result<load::Played> played = load::Play(target_.service(), requests_, clock_, options, hooks, stop_);
  console_.EndProgress();
  TRY_STATUS(watching);
  TRY_STATUS(kept);
  return played;
}

load::Surroundings Session::SurroundingsOf(const LevelResult& result) const {
  load::Surroundings around{
      .rate = {}, .cpus = cpus_, .steal_percent = {}, .foreign_cpu = {}, .throttled_s = {}};
  if (const auto* open = std::get_if<load::Rate>(&result.level.scenario)) around.rate = open->per_second;
  if (!result.resources) return around;
  const monitor::Resources& r = *result.resources;
  around.steal_percent = r.steal_percent;
  around.throttled_s = r.throttled_s;
  // Of a server that is not watched one cannot tell whether it is here.
  const bool is_local = target_.protocol() == "in-process";
  if (r.client_cpu && r.app_cpu && (is_local || result.server_resources)) {
    double ours = r.app_cpu->mean + (r.recogniser_cpu ? r.recogniser_cpu->mean : 0) + r.observer_cpu;
    if (result.server_resources && result.server_resources->app_cpu)
      ours += result.server_resources->app_cpu->mean;
    around.foreign_cpu = std::max(0.0, r.client_cpu->mean - ours);
  }
  return around;
}

// Repeats that lie far apart are of a system that changes between them.
void Session::JudgeSpread(LevelResult& result) const {
  if (result.repeats.size() < 2) return;
  const auto judge = [&](auto value, const char* what, record::Verdict& verdict) {
    const auto [low, high] = std::ranges::minmax(result.repeats, {}, value);
    const double least = value(low), most = value(high);
    if (least > 0 && most / least <= 1 + flags_.stability_percentage / 100) return;
    verdict.Add(record::Standing::kSuspect,
                {record::Reason::kNoSteadyState,
                 fmt::format("{} of the repeats lies between {} and {}, more than {:g} % apart", what,
                             Short(least), Short(most), flags_.stability_percentage)});
  };
  judge([](const load::Played& p) { return p.throughput(); }, "the throughput", result.claims.throughput);
  judge([](const load::Played& p) { return 1e-6 * p.tally.response.Mean().value_or(0); },
        "the mean response time", result.claims.latency);
}

void Session::AnswerThreshold(LevelResult& result) const {
  if (flags_.latency_threshold_ms <= 0) return;
  const double p = flags_.percentile > 0 ? flags_.percentile / 100 : 0.5;
  // What was not answered took longer than any threshold.
  const int64_t lost = result.tally.planned() - result.tally.answered();
  const int64_t over =
      result.tally.response.CountAbove(FromSeconds(flags_.latency_threshold_ms / 1e3).count()) + lost;
  result.below_threshold = stats::QuantileIsBelow(p, result.tally.planned(), over);
}

Result<LevelResult> Session::PlayLevel(const LoadLevel& level, const LoadLength& length, int number,
                                       Seed seed) {
  LevelResult result;
  result.level = level;
  for (int repeat = 0; repeat < length.repeats && !stop_.stop_requested(); ++repeat) {
    load::Played played = TRY(PlayOnce(result, length, number, repeat, seed));
    const load::Claims claims = load::Judge(played, SurroundingsOf(result));
    Join(result.claims.throughput, claims.throughput);
    Join(result.claims.latency, claims.latency);
    result.tally.Merge(played.tally);
    result.measured_s += played.measured_s;
    result.cpu_s += played.cpu_s;
    result.spin_s += played.spin_s;
    result.repeats.push_back(std::move(played));
  }
  if (flags_.percentile > 0)
    load::JudgePercentile(result.tally.response, flags_.percentile / 100, result.claims.latency);
  JudgeSpread(result);
  AnswerThreshold(result);
  return result;
}

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
  if (flags.is_open() || !flags.concurrency_range.empty() || flags.find_peak)
    return Invalid(
        "--scenario says what is played: leave --concurrency-range, the rates and --find-peak out");
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
                                             Session& session, Console& console, const std::stop_token& stop,
                                             LoadResult& result) {
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

Status FindPeak(const LoadFlags& flags, const LoadLevel& first, Session& session, Console& console,
                const std::stop_token& stop, LoadResult& result) {
  constexpr double kLongest = 600;  // seconds of a run: lower rates would take longer to decide
  const auto* rate = std::get_if<load::Rate>(&first.scenario);
  if (flags.latency_threshold_ms <= 0) return Invalid("--find-peak wants a bound: --latency-threshold MS");
  if (rate == nullptr) return Invalid("--find-peak wants a rate to begin with: --request-rate-range RATE");
  const double percentile = flags.percentile > 0 ? flags.percentile / 100 : 0.5;
  const double least = std::min(rate->per_second, Deciding(percentile) / kLongest);
  load::PeakSearch search = TRY(load::PeakSearch::Create({.start_rate = rate->per_second, .least = least}));
  while (const auto probe = search.Next()) {
    const LoadLength length = LengthAt(result.length, probe->rate, percentile, probe->length_factor);
    const auto answer = TRY(TryRate(flags, first, *probe, length, session, console, stop, result));
    if (stop.stop_requested()) return {};
    if (!answer) {
      result.peak = load::PeakSearch::Outcome{};  // nothing was found out
      return {};
    }
    search.Tell(*answer);
  }
  result.peak = search.outcome();
  return {};
}

Status PlayLevels(const LoadFlags& flags, const std::vector<LoadLevel>& levels,
                  const std::optional<Mlperf>& mlperf, Session& session, Console& console,
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
  const Console console(flags.json);
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

Result<int> RunLoad(LoadFlags& flags, const std::stop_token& stop) {
  Console console(flags.json);
  TRY_STATUS(console.CheckJson());
  const std::optional<Mlperf> mlperf = TRY(FindMlperf(flags));
  const std::vector<LoadLevel> levels = mlperf ? std::vector{mlperf->level} : TRY(LevelsOf(flags));
  const SteadyClock clock;
  const std::unique_ptr<LoadTarget> target = TRY(OpenLoadTarget(flags, clock, MostInFlight(levels)));
  load::Requests requests = TRY(MakeRequests(flags, *target, console));
  TRY_STATUS(target->Prepare(requests));
  LoadResult result{.flags = flags,
                    .target = *target,
                    .length = LengthOf(flags),
                    .batch = flags.batch,
                    .levels = {},
                    .peak = {}};
  console.Text(fmt::format(
      "{}, {}\n", console.Bold(target->Title()),
      result.length.requests > 0
          ? fmt::format("{} requests a level", Count(result.length.requests))
          : fmt::format("{:g} s a level", Seconds(result.length.length) * result.length.repeats)));
  if (!result.length.note.empty()) console.Note(result.length.note);
  Session session(flags, *target, requests, clock, console, stop);
  TRY_STATUS(session.KeepSamples(levels));
  if (flags.find_peak) {
    TRY_STATUS(FindPeak(flags, levels.front(), session, console, stop, result));
  } else {
    TRY_STATUS(PlayLevels(flags, levels, mlperf, session, console, stop, result));
  }
  result.interrupted = stop.stop_requested();
  console.Text(TableText(result) + PeakText(console, result));
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
