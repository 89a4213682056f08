#include "load/session/load_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "load/session/balance.h"
#include "load/verdict/level_verdict.h"
#include "results/sample_header.h"

namespace weir::load {
namespace {

// Returns the timeout of a request; one that is too short for the clock is still one.
Duration TimeoutOf(const LoadOptions& options) {
  const double ms = options.request_timeout_ms;
  return ms > 0 ? std::max(Duration(1us), FromSeconds(ms / 1e3)) : Duration{};
}

}  // namespace

LoadSession::LoadSession(const LoadOptions& options, Target& target, const Requests& requests,
                         const Clock& clock, SessionHooks hooks, const std::stop_token& stop)
    : options_(options),
      target_(target),
      requests_(requests),
      clock_(clock),
      hooks_(std::move(hooks)),
      stop_(stop),
      cpus_(static_cast<int>(std::thread::hardware_concurrency())) {}

const std::optional<Ceiling>& LoadSession::MeasuredCeiling() {
  if (std::exchange(asked_for_ceiling_, true) || !hooks_.measure_ceiling) return ceiling_;
  auto ceiling = hooks_.measure_ceiling();
  if (ceiling)
    ceiling_ = *ceiling;
  else if (!stop_.stop_requested() && hooks_.note)
    hooks_.note(fmt::format("what the generator itself can do is not known: {}", ceiling.error().message));
  return ceiling_;
}

Status LoadSession::KeepSamples(const std::vector<Level>& levels) {
  if (options_.samples.empty()) return {};
  results::SampleHeader about{.model = EscapeBytes(target_.info().name), .levels = {}};
  for (const Level& level : levels) about.levels.push_back(level.name);
  samples_ = TRY(SampleFile::Create(options_.samples, {.start = clock_.Now(), .about = about.ToJson()}));
  return {};
}

std::optional<LoadSession::CountedRequests> LoadSession::CountAtServer(const RequestCounter& so_far) {
  const auto ours = [&] {
    RequestsSoFar all = earlier_;
    if (so_far) all += so_far();
    return all;
  };
  const RequestsSoFar asked = ours();
  const auto totals = target_.Statistics();
  if (!totals) return std::nullopt;
  return CountedRequests{.totals = *totals, .asked = asked, .told = ours()};
}

void LoadSession::AddServerCounts(const std::optional<CountedRequests>& before,
                                  const std::optional<CountedRequests>& after, LevelResult& result) {
  if (!before || !after) return;
  // The counts of a model that was reloaded meanwhile start from 0.
  if (after->totals.success.count < before->totals.success.count ||
      after->totals.fail.count < before->totals.fail.count)
    return;
  const infer::PhaseTotals since = after->totals - before->totals;
  result.server += since;
  const ServerShare share =
      CompareCounts(static_cast<int64_t>(since.success.count + since.fail.count), before->asked, after->told);
  result.server_share = result.server_share.value_or(ServerShare{}) += share;
}

Result<RunOutcome> LoadSession::PlayOnce(LevelResult& result, const LevelLength& length, int number,
                                         int repeat, Seed seed) {
  PlayOptions options{.scenario = result.level.scenario,
                      .warm_up = FromSeconds(options_.warm_up_s),
                      .warm_up_requests = options_.warm_up_requests,
                      .length = length.length,
                      .requests = length.requests,
                      .timeout = TimeoutOf(options_)};
  options.seed = seed.Stream(static_cast<uint64_t>(repeat));
  std::optional<CountedRequests> before;
  std::unique_ptr<monitor::ResourceMonitor> own;
  std::optional<monitor::ServerWatch> server;
  Status watching;
  PlayHooks hooks;
  if (target_.is_driven())
    hooks.drive = [&](Instant until, Duration awake) { return target_.Drive(until, awake); };
  hooks.give_up = [&] { target_.GiveUp(); };
  const bool warms_up = options.warm_up > Duration{} || options.warm_up_requests > 0;
  if (!warms_up) before = CountAtServer({});  // a short run may end before `measuring` is called
  std::vector<infer::ServerCalls> calls_before = target_.Calls();
  hooks.measuring = [&](const RequestCounter& so_far) {
    if (warms_up) calls_before = target_.Calls();
    if (warms_up) before = CountAtServer(so_far);
    auto monitor = monitor::ResourceMonitor::Start(clock_, {});
    if (monitor) own = *std::move(monitor);
    if (!options_.server.any()) return;
    auto other = monitor::ServerWatch::Start(options_.server, hooks_.server, clock_);
    if (other)
      server = *std::move(other);
    else
      watching = std::unexpected(other.error());
  };
  hooks.measured = [&](const RequestCounter& so_far) {
    if (own) result.resources = own->Stop();
    if (server) result.server_resources = server->Stop();
    AddServerCounts(before, CountAtServer(so_far), result);
  };
  Status kept;
  if (samples_) {
    hooks.samples = [&](std::span<const Sample> samples) {
      if (kept) kept = samples_->Write(number, repeat, samples);
    };
  }
  if (hooks_.progress) hooks.progress = [&](const Progress& p) { hooks_.progress(result.level, p); };
  if (hooks_.begin) options.begin = hooks_.begin();
  Result<RunOutcome> played = Play(target_.service(), requests_, clock_, options, hooks, stop_);
  if (hooks_.progress_ended) hooks_.progress_ended();
  AddCalls(CallsSince(calls_before, target_.Calls()), result.calls);
  if (played) earlier_ += played->requests;
  TRY_STATUS(watching);
  TRY_STATUS(kept);
  return played;
}

Environment LoadSession::EnvironmentOf(const LevelResult& result, const RunOutcome& played) {
  std::optional<double> ceiling_per_s;
  if (played.busiest_thread > Limits{}.worth_calibrating || options_.calibrate) {
    if (const auto& ceiling = MeasuredCeiling()) ceiling_per_s = ceiling->per_s;
  }
  return FindEnvironment({.scenario = result.level.scenario,
                          .ceiling_per_s = ceiling_per_s,
                          .cpus = cpus_,
                          .is_local = target_.protocol() == "in-process",
                          .resources = result.resources,
                          .server_resources = result.server_resources});
}

Result<LevelResult> LoadSession::PlayRepeats(const Level& level, const LevelLength& length, int number,
                                             Seed seed) {
  LevelResult result;
  result.level = level;
  for (int repeat = 0; repeat < length.repeats && !stop_.stop_requested(); ++repeat) {
    RunOutcome played = TRY(PlayOnce(result, length, number, repeat, seed));
    const Environment environment = EnvironmentOf(result, played);
    const Claims claims = Judge(played, environment);
    MergeVerdict(result.claims.throughput, claims.throughput);
    MergeVerdict(result.claims.latency, claims.latency);
    result.tally.Merge(played.tally);
    result.measured_s += played.measured_s;
    result.cpu_s += played.cpu_s;
    result.spin_s += played.spin_s;
    result.repeats.push_back(std::move(played));
    result.environments.push_back(environment);
  }
  return result;
}

Result<LevelResult> LoadSession::PlayLevel(const Level& level, const LevelLength& length, int number,
                                           Seed seed) {
  LevelResult result = TRY(PlayRepeats(level, length, number, seed));
  JudgeLevel(options_, result);
  return result;
}

void JudgeLevel(const LoadOptions& options, LevelResult& result) {
  if (options.percentile > 0)
    JudgePercentile(result.tally.response, options.percentile / 100, result.claims.latency);
  if (result.server_share) JudgeServerShare(*result.server_share, result.claims);
  JudgeSpread(result.repeats, options.stability_percentage, result.claims);
  result.below_threshold =
      BelowThreshold(result.tally, options.judged_percentile(), options.latency_threshold_ms);
}

}  // namespace weir::load
