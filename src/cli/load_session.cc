#include "cli/load_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

#include "stats/early_stopping.h"

namespace weir::cli {
namespace {

// The worse of two, with the reasons of both; of each reason the first evidence.
void Join(record::Verdict& sum, const record::Verdict& more) {
  for (const record::Cause& cause : more.causes) {
    if (std::ranges::find(sum.causes, cause.reason, &record::Cause::reason) == sum.causes.end())
      sum.causes.push_back(cause);
  }
  sum.standing = std::max(sum.standing, more.standing);
}

// A timeout too short for the clock is still one.
Duration TimeoutOf(const LoadFlags& flags) {
  const double ms = flags.request_timeout_ms;
  return ms > 0 ? std::max(Duration(1us), FromSeconds(ms / 1e3)) : Duration{};
}

}  // namespace

LoadSession::LoadSession(const LoadFlags& flags, LoadTarget& target, const load::Requests& requests,
                         std::vector<infer::Request> probe, const Clock& clock, Console& console,
                         const std::stop_token& stop)
    : flags_(flags),
      target_(target),
      requests_(requests),
      probe_(std::move(probe)),
      clock_(clock),
      console_(console),
      stop_(stop),
      cpus_(static_cast<int>(std::thread::hardware_concurrency())) {}

const std::optional<Ceiling>& LoadSession::MeasuredCeiling() {
  // A server that does nothing stands for a model's; what an --endpoint answers is not known.
  const bool has_null_server = target_.protocol() != "in-process" && flags_.endpoint.empty();
  if (std::exchange(asked_for_ceiling_, true) || !has_null_server) return ceiling_;
  auto ceiling = MeasureCeiling(flags_, target_, probe_, clock_, stop_);
  if (ceiling)
    ceiling_ = *ceiling;
  else if (!stop_.stop_requested())
    console_.Note(fmt::format("what the generator itself can do is not known: {}", ceiling.error().message));
  return ceiling_;
}

Status LoadSession::KeepSamples(const std::vector<LoadLevel>& levels) {
  if (flags_.samples.empty()) return {};
  Json about = {{"model", EscapeBytes(target_.info().name)}, {"levels", Json::array()}};
  for (const LoadLevel& level : levels) about["levels"].push_back(level.name);
  samples_ =
      TRY(load::SampleFile::Create(flags_.samples, {.start = clock_.Now(), .about = std::move(about)}));
  return {};
}

std::optional<LoadSession::Look> LoadSession::LookAtServer(const load::RequestCounter& so_far) {
  const auto ours = [&] {
    load::RequestsSoFar all = earlier_;
    if (so_far) all += so_far();
    return all;
  };
  const load::RequestsSoFar asked = ours();
  const auto totals = target_.Statistics();
  if (!totals) return std::nullopt;
  return Look{.totals = *totals, .asked = asked, .told = ours()};
}

void LoadSession::AddServerCounts(const std::optional<Look>& before, const std::optional<Look>& after,
                                  LevelResult& result) {
  if (!before || !after) return;
  // A server that was loaded anew meanwhile counts from 0.
  if (after->totals.success.count < before->totals.success.count ||
      after->totals.fail.count < before->totals.fail.count)
    return;
  const infer::PhaseTotals since = after->totals - before->totals;
  result.server += since;
  const load::ServerShare share = load::CompareCounts(
      static_cast<int64_t>(since.success.count + since.fail.count), before->asked, after->told);
  result.server_share = result.server_share.value_or(load::ServerShare{}) += share;
}

Result<load::RunOutcome> LoadSession::PlayOnce(LevelResult& result, const LoadLength& length, int number,
                                               int repeat, Seed seed) {
  load::PlayOptions options{.scenario = result.level.scenario,
                            .warm_up = FromSeconds(flags_.warm_up_s),
                            .warm_up_requests = flags_.warm_up_requests,
                            .length = length.length,
                            .requests = length.requests,
                            .timeout = TimeoutOf(flags_)};
  options.seed = seed.Stream(static_cast<uint64_t>(repeat));
  std::optional<Look> before;
  std::unique_ptr<monitor::ResourceMonitor> own;
  std::optional<ServerWatch> server;
  Status watching;
  load::PlayHooks hooks;
  if (target_.is_driven())
    hooks.drive = [&](Instant until, Duration awake) { return target_.Drive(until, awake); };
  hooks.give_up = [&] { target_.GiveUp(); };
  const bool warms_up = options.warm_up > Duration{} || options.warm_up_requests > 0;
  if (!warms_up) before = LookAtServer({});  // a short run may be over before it is asked
  hooks.measuring = [&](const load::RequestCounter& so_far) {
    if (warms_up) before = LookAtServer(so_far);
    auto monitor = monitor::ResourceMonitor::Start(clock_, {});
    if (monitor) own = *std::move(monitor);
    if (!flags_.server.any()) return;
    auto other = ServerWatch::Start(flags_.server, clock_);
    if (other)
      server = *std::move(other);
    else
      watching = std::unexpected(other.error());
  };
  hooks.measured = [&](const load::RequestCounter& so_far) {
    if (own) result.resources = own->Stop();
    if (server) result.server_resources = server->Stop();
    AddServerCounts(before, LookAtServer(so_far), result);
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
  Result<load::RunOutcome> played = load::Play(target_.service(), requests_, clock_, options, hooks, stop_);
  console_.EndProgress();
  if (played) earlier_ += played->requests;
  TRY_STATUS(watching);
  TRY_STATUS(kept);
  return played;
}

load::Environment LoadSession::EnvironmentOf(const LevelResult& result, const load::RunOutcome& played) {
  load::Environment around{.rate = {},
                           .ceiling_per_s = {},
                           .cpus = cpus_,
                           .steal_percent = {},
                           .foreign_cpu = {},
                           .throttled_s = {}};
  if (played.busiest_thread > load::Limits{}.worth_calibrating || flags_.calibrate) {
    if (const auto& ceiling = MeasuredCeiling()) around.ceiling_per_s = ceiling->per_s;
  }
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
void LoadSession::JudgeSpread(LevelResult& result) const {
  if (result.repeats.size() < 2) return;
  const auto judge = [&](auto value, const char* what, record::Verdict& verdict) {
    const auto [low, high] = std::ranges::minmax_element(result.repeats, {}, value);
    const double least = value(*low), most = value(*high);
    if (least > 0 && most / least <= 1 + flags_.stability_percentage / 100) return;
    verdict.Add(record::Standing::kSuspect,
                {record::Reason::kNoSteadyState,
                 fmt::format("{} of the repeats lies between {} and {}, more than {:g} % apart", what,
                             Short(least), Short(most), flags_.stability_percentage)});
  };
  judge([](const load::RunOutcome& p) { return p.throughput(); }, "the throughput", result.claims.throughput);
  judge([](const load::RunOutcome& p) { return 1e-6 * p.tally.response.Mean().value_or(0); },
        "the mean response time", result.claims.latency);
}

void LoadSession::AnswerThreshold(LevelResult& result) const {
  if (flags_.latency_threshold_ms <= 0) return;
  const double p = flags_.percentile > 0 ? flags_.percentile / 100 : 0.5;
  // What was not answered took longer than any threshold.
  const int64_t lost = result.tally.planned() - result.tally.answered();
  const int64_t over =
      result.tally.response.CountAbove(FromSeconds(flags_.latency_threshold_ms / 1e3).count()) + lost;
  result.below_threshold = stats::QuantileIsBelow(p, result.tally.planned(), over);
}

Result<LevelResult> LoadSession::PlayLevel(const LoadLevel& level, const LoadLength& length, int number,
                                           Seed seed) {
  LevelResult result;
  result.level = level;
  for (int repeat = 0; repeat < length.repeats && !stop_.stop_requested(); ++repeat) {
    load::RunOutcome played = TRY(PlayOnce(result, length, number, repeat, seed));
    const load::Claims claims = load::Judge(played, EnvironmentOf(result, played));
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
  if (result.server_share) load::JudgeServerShare(*result.server_share, result.claims);
  JudgeSpread(result);
  AnswerThreshold(result);
  return result;
}

}  // namespace weir::cli
