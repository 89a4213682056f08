#include "load/session/load_result.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "load/session/level_split.h"
#include "load/verdict/judge.h"
#include "oip/server_shares.h"
#include "stats/quantile.h"
#include "stats/summary.h"

namespace weir::load {
namespace {

using results::LoadResult;

constexpr double kConfidence = 0.95;

std::optional<double> ScaledMs(const auto& value) {
  return value ? std::optional(1e-6 * static_cast<double>(*value)) : std::nullopt;
}

// `send`: the sending times of the same requests, if they are a part of `times`.
LoadResult::Times TimesOf(const stats::Histogram& times, const stats::Histogram& send = {}) {
  LoadResult::Times made{.mean = ScaledMs(times.Mean()),
                         .standard_deviation = ScaledMs(times.StandardDeviation()),
                         .min = ScaledMs(times.Min()),
                         .percentiles = {},
                         .max = ScaledMs(times.Max()),
                         .n = times.count(),
                         .intervals_95 = {}};
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i) {
    const auto& [name, p] = LoadResult::kPercentiles[i];
    made.percentiles[i] = QuantileMs(times, p);
    const auto ranks = stats::QuantileRanks(p, times.count(), kConfidence);
    if (!ranks || !made.percentiles[i]) continue;
    const double outside = OutsideOfServer(QuantileMs(send, p), made.min);
    made.intervals_95[name] = {*ScaledMs(times.AtRank(ranks->low)) - outside,
                               *ScaledMs(times.AtRank(ranks->high))};
  }
  return made;
}

std::optional<LoadResult::Times> TimesIfAny(const stats::Histogram& times) {
  return times.empty() ? std::nullopt : std::optional(TimesOf(times));
}

std::vector<LoadResult::Reason> ReasonsOf(const Claims& claims) {
  std::vector<LoadResult::Reason> reasons;
  for (const results::Cause& cause : CausesOf(claims)) {
    LoadResult::Reason& reason = reasons.emplace_back();
    reason.reason = ToString(cause.reason);
    if (std::ranges::find(claims.throughput.causes, cause) != claims.throughput.causes.end())
      reason.about.emplace_back("throughput");
    if (std::ranges::find(claims.latency.causes, cause) != claims.latency.causes.end())
      reason.about.emplace_back("latency");
    reason.evidence = cause.evidence;
  }
  return reasons;
}

LoadResult::Run RunOf(const RunOutcome& played) {
  return {.throughput_per_s = played.throughput(),
          .measured_s = played.measured_s,
          .answered = played.tally.answered(),
          .planned = played.tally.planned(),
          .warm_up_s = played.warm_up_s,
          .warm_up_requests = played.warm_up_requests,
          .by_count = played.by_count,
          .generator = LoadResult::Generator{.sent = played.tally.slip.count(),
                                             .late = played.tally.late,
                                             .sent_per_s = played.sent_per_s(),
                                             .empty_share = played.empty_share,
                                             .busiest_thread = played.busiest_thread},
          .response = TimesOf(played.tally.response, played.tally.send),
          .client_send = TimesIfAny(played.tally.send)};
}

void AddSetting(const LevelResult& level, LoadResult::Level& made) {
  if (const auto* closed = std::get_if<Concurrency>(&level.level.scenario)) {
    made.load_model = LoadResult::kClosed;
    made.concurrency = closed->in_flight;
    made.mode = std::string(
        ToString(closed->wait == Concurrency::Wait::kSync ? infer::Mode::kSync : infer::Mode::kAsync));
    return;
  }
  const auto& open = std::get<Rate>(level.level.scenario);
  constexpr std::array kNames = {
      ToString(infer::Distribution::kConstant), ToString(infer::Distribution::kPoisson),
      ToString(infer::Distribution::kGamma), std::string_view("trace"), std::string_view("profile")};
  made.load_model = LoadResult::kOpen;
  made.request_rate = open.per_second;
  made.distribution = std::string(kNames.at(open.arrivals.index()));
}

LoadResult::ServerTimes ServerOf(const infer::MeanServerTimes& times, double service_ms) {
  return {.queue = times.queue_ms,
          .compute_input = times.compute_input_ms,
          .compute_infer = times.compute_infer_ms,
          .compute_output = times.compute_output_ms,
          .request = times.request_ms,
          .outside = service_ms - times.request_ms,
          .receive = times.receive_ms,
          .rows_per_batch = times.rows_per_batch > 0 ? std::optional(times.rows_per_batch) : std::nullopt};
}

LoadResult::Split SplitOf(const MeanSplit& split) {
  LoadResult::Split made{.slip = split.slip,
                         .client_receive = split.client_receive,
                         .client_send = split.client_send,
                         .wire_and_wait = split.wire_and_wait,
                         .server = {}};
  if (split.server) {
    made.server = LoadResult::Split::Server{.receive = split.server->receive_ms,
                                            .queue = split.server->queue_ms,
                                            .compute_input = split.server->compute_input_ms,
                                            .compute_infer = split.server->compute_infer_ms,
                                            .compute_output = split.server->compute_output_ms,
                                            .rest = split.server->rest_ms()};
  }
  return made;
}

// `sends`: the client knows how long it sent.
LoadResult::Slowest SlowestResult(const SlowestRequests& slowest, double percentile, bool sends) {
  const auto ms = [&](SplitPart part) { return 1e-6 * slowest.mean.of(part); };
  LoadResult::Split split{.slip = ms(SplitPart::kSlip),
                          .client_receive = ms(SplitPart::kClientReceive),
                          .client_send = sends ? std::optional(ms(SplitPart::kClientSend)) : std::nullopt,
                          .wire_and_wait = ms(SplitPart::kWireAndWait),
                          .server = LoadResult::Split::Server{.receive = ms(SplitPart::kReceive),
                                                              .queue = ms(SplitPart::kQueue),
                                                              .compute_input = ms(SplitPart::kComputeInput),
                                                              .compute_infer = ms(SplitPart::kComputeInfer),
                                                              .compute_output = ms(SplitPart::kComputeOutput),
                                                              .rest = ms(SplitPart::kServerRest)}};
  return {.above_percentile = percentile,
          .n = slowest.requests,
          .mean = 1e-6 * slowest.mean.response,
          .split = std::move(split)};
}

// Adds the server's times and the split, or why they are left out if the server's account is not of our
// requests.
void AddSplit(const LevelResult& level, double percentile, LoadResult::Level& made) {
  if (level.server_share) {
    made.server_requests = {.counted = level.server_share->counted,
                            .ours_at_most = level.server_share->ours_at_most,
                            .others_at_least = level.server_share->others_at_least()};
  }
  const auto [times, left_out] = ServerAccountOf(level);
  if (!left_out.empty()) {
    made.split_left_out = left_out;
    return;
  }
  if (const auto service = MeanMs(level.tally.service); times && service)
    made.server = ServerOf(*times, *service);
  if (const auto split = MeanSplitOf(level, times)) made.split = SplitOf(*split);
  if (const auto slowest = SlowestOf(level, percentile))
    made.slowest = SlowestResult(*slowest, percentile, !level.tally.send.empty());
}

// Returns the counts in the coarse buckets of results, which those of other trials may be added to.
std::vector<std::pair<int64_t, int64_t>> CountsOf(const stats::Histogram& times) {
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (const auto& [nanoseconds, count] : times.Buckets()) {
    const int64_t bucket = LoadResult::BucketOf(1e-6 * static_cast<double>(nanoseconds));
    if (counts.empty() || counts.back().first != bucket) counts.emplace_back(bucket, 0);
    counts.back().second += count;
  }
  return counts;
}

std::vector<LoadResult::Part> PartsOf(const LevelResult& level) {
  std::vector<LoadResult::Part> parts;
  if (!level.tally.windows) return parts;
  const double width = level.tally.windows->width_s();
  const double seconds = width * static_cast<double>(std::max<size_t>(1, level.repeats.size()));
  for (const TraceWindows::Window& window : level.tally.windows->windows()) {
    const auto number = static_cast<double>(parts.size());
    parts.push_back({.from_s = number * width,
                     .to_s = (number + 1) * width,
                     .planned = window.planned(),
                     .answered = window.answered,
                     .failed = window.failed,
                     .planned_per_s = static_cast<double>(window.planned()) / seconds,
                     .response = TimesOf(window.response)});
  }
  return parts;
}

LoadResult::Host HostOf(const HostPart& part) {
  LoadResult::Host made{.name = part.name,
                        .rank = part.rank,
                        .clock_offset_us = {},
                        .clock_error_us = {},
                        .lost = part.lost,
                        .verdict = {.throughput = std::string(ToString(part.claims.throughput.standing)),
                                    .latency = std::string(ToString(part.claims.latency.standing))},
                        .throughput_per_s = part.throughput,
                        .planned = part.tally.planned(),
                        .answered = part.tally.answered(),
                        .failed = part.tally.failed(),
                        .response = TimesOf(part.tally.response, part.tally.send),
                        .client_cpu_us_per_request = {}};
  if (part.clock_offset) made.clock_offset_us = Microseconds(*part.clock_offset);
  if (part.clock_error) made.clock_error_us = Microseconds(*part.clock_error);
  if (part.cpu_s > 0 && part.tally.answered() > 0)
    made.client_cpu_us_per_request = 1e6 * part.cpu_s / static_cast<double>(part.tally.answered());
  return made;
}

LoadResult::Level LevelOf(const LoadOptions& options, int batch, const LevelResult& level) {
  LoadResult::Level made;
  AddSetting(level, made);
  made.verdict = {.throughput = std::string(ToString(level.claims.throughput.standing)),
                  .latency = std::string(ToString(level.claims.latency.standing))};
  made.reasons = ReasonsOf(level.claims);
  made.throughput_per_s = level.throughput();
  made.rows_per_s = level.throughput() * batch;
  if (const auto spread = stats::Summarise(Throughputs(level)); spread && spread->n > 1) {
    made.repeats = spread->n;
    made.throughput_standard_error = spread->standard_error;
  }
  made.measured_s = level.measured_s;
  made.elapsed_s = level.elapsed_s();
  made.planned = level.tally.planned();
  made.answered = level.tally.answered();
  made.failed = level.tally.failed();
  made.unsent = level.tally.of(Outcome::kUnsent);
  const stats::Histogram& send = level.tally.send;
  made.response = TimesOf(level.tally.response, send);
  if (const auto half = MeanHalfWidthMs(level)) {
    const double mean = made.response.mean.value_or(0);
    made.response.intervals_95[LoadResult::kMean] = {mean - *half - OutsideOfServerMs(level), mean + *half};
  }
  made.response_counts = CountsOf(level.tally.response);
  made.service = TimesOf(level.tally.service, send);
  made.first_byte = TimesOf(level.tally.first_byte, send);
  made.client_send = TimesIfAny(send);
  made.slip = TimesOf(level.tally.slip);
  for (int i = 1; i < kOutcomes; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (level.tally.of(outcome) > 0) made.errors[std::string(ToString(outcome))] = level.tally.of(outcome);
  }
  if (level.cpu_s > 0 && level.answered() > 0) made.client_cpu_us_per_request = CpuMicroseconds(level);
  made.spin_cpu_s = level.spin_s;
  made.trace = PartsOf(level);
  made.servers = oip::SharesOf(options.balance, level.calls);
  AddSplit(level, SlowPercentile(options), made);
  if (level.below_threshold) {
    constexpr std::array kAnswers = {"yes", "no", "undecided"};
    made.below_threshold = kAnswers.at(static_cast<size_t>(*level.below_threshold));
  }
  if (level.mlperf) {
    made.mlperf = {.metric = level.mlperf->metric,
                   .valid = level.mlperf->valid,
                   .shortfalls = level.mlperf->shortfalls,
                   .value = level.mlperf->value};
  }
  made.resources = level.resources;
  made.server_resources = level.server_resources;
  if (const int64_t lost = SamplesLost(level); lost > 0) made.samples_lost = lost;
  for (const HostPart& part : level.hosts) made.hosts.push_back(HostOf(part));
  for (const RunOutcome& played : level.repeats) {
    made.runs.push_back(RunOf(played));
    for (const std::string& error : played.errors) made.error_messages.push_back(EscapeBytes(error));
  }
  return made;
}

}  // namespace

std::optional<double> QuantileMs(const stats::Histogram& histogram, double p) {
  if (!stats::Supports(p, histogram.count())) return std::nullopt;
  return ScaledMs(histogram.Quantile(p));
}

std::vector<results::Cause> CausesOf(const Claims& claims) {
  std::vector<results::Cause> causes = claims.throughput.causes;
  for (const results::Cause& cause : claims.latency.causes) {
    if (std::ranges::find(causes, cause) == causes.end()) causes.push_back(cause);
  }
  return causes;
}

int64_t SamplesLost(const LevelResult& level) {
  int64_t lost = 0;
  for (const RunOutcome& played : level.repeats) lost += played.samples_lost;
  return lost;
}

std::vector<double> Throughputs(const LevelResult& level) {
  std::vector<double> values;
  for (const RunOutcome& played : level.repeats) values.push_back(played.throughput());
  return values;
}

double CpuMicroseconds(const LevelResult& level) {
  const auto answers = static_cast<double>(std::max<int64_t>(1, level.answered()));
  return 1e6 * level.cpu_s / answers;
}

std::optional<double> MeanHalfWidthMs(const LevelResult& level) {
  if (HasProfile(level.level.scenario) && level.repeats.size() == 1) return std::nullopt;  // it is not steady
  if (level.repeats.size() == 1) {
    const auto interval = MeanResponse(level.repeats.front());
    return interval ? std::optional(500 * (interval->high - interval->low)) : std::nullopt;
  }
  std::vector<double> means;
  for (const RunOutcome& played : level.repeats) {
    if (const auto mean = ScaledMs(played.tally.response.Mean())) means.push_back(*mean);
  }
  const auto summary = stats::Summarise(means);
  if (!summary || !summary->low) return std::nullopt;
  return (*summary->high - *summary->low) / 2;
}

double OutsideOfServerMs(const LevelResult& level) {
  return OutsideOfServer(ScaledMs(level.tally.send.Mean()), ScaledMs(level.tally.response.Min()));
}

results::LoadResult MakeResult(const LoadSummary& summary, const record::Provenance& provenance) {
  LoadResult made;
  made.model = summary.target.info().name;
  made.protocol = summary.target.protocol();
  made.batch = summary.batch;
  made.claim =
      LoadResult::Claim{.percentile = summary.options.percentile > 0 ? summary.options.percentile : 50,
                        .latency_threshold_ms = summary.options.latency_threshold_ms > 0
                                                    ? std::optional(summary.options.latency_threshold_ms)
                                                    : std::nullopt};
  for (const LevelResult& level : summary.outcome.levels)
    made.levels.push_back(LevelOf(summary.options, summary.batch, level));
  if (summary.outcome.peak) {
    made.peak = {.confirmed = summary.outcome.peak->confirmed,
                 .runs = std::ssize(summary.outcome.levels),
                 .spoiled = summary.outcome.peak_spoiled,
                 .request_rate = summary.outcome.peak->rate,
                 .failed_at = summary.outcome.peak->failed_at};
  }
  if (summary.ceiling)
    made.generator = {.ceiling_per_s = summary.ceiling->per_s, .floor_ms = summary.ceiling->floor_ms};
  made.interrupted = summary.interrupted;
  made.provenance = provenance.ToJson();
  return made;
}

}  // namespace weir::load
