#include "probe/probe_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir::probe {
namespace {

using results::StorageProbeResult;

results::Percentiles ToMicroseconds(const stats::Histogram& ns) {
  const auto us = [](std::optional<int64_t> value) {
    return value ? std::optional(static_cast<double>(*value) / 1e3) : std::nullopt;
  };
  return {.p50 = us(ns.Quantile(0.5)),
          .p90 = us(ns.Quantile(0.9)),
          .p99 = us(ns.Quantile(0.99)),
          .p99_9 = us(ns.Quantile(0.999)),
          .max = us(ns.Max()),
          .count = ns.count()};
}

std::optional<results::Percentiles> IfAny(const stats::Histogram& ns) {
  return ns.count() > 0 ? std::optional(ToMicroseconds(ns)) : std::nullopt;
}

std::optional<double> Percent(std::optional<double> share) {
  return share ? std::optional(100 * *share) : std::nullopt;
}

StorageProbeResult::Reads ToResult(const ReadTally& reads) {
  return {.cached_share = reads.CachedShare(),
          .open_us = ToMicroseconds(reads.open_ns),
          .read_us = ToMicroseconds(reads.read_ns),
          .close_us = ToMicroseconds(reads.close_ns),
          .decode_us = IfAny(reads.decode_ns),
          .augment_us = IfAny(reads.augment_ns),
          .errors = reads.errors,
          .first_errors = reads.first_errors,
          .hung = reads.hung};
}

results::ProbeVerdict ToResult(const StorageVerdict& verdict) {
  results::ProbeVerdict result{.verdict = std::string(results::ToString(verdict.standing))};
  for (const StorageCause& cause : verdict.causes)
    result.reasons.push_back({.reason = cause.reason, .evidence = cause.evidence});
  return result;
}

results::ProbeMachine ToResult(const MachineUse& machine) {
  return {.bytes_from_device = machine.device_bytes,
          .bytes_from_mount = machine.mount_bytes,
          .foreign_cores = machine.foreign_cores,
          .steal_percent = machine.steal_percent};
}

StorageProbeResult::Set ToResult(const SetFacts& set) {
  return {.samples = set.samples,
          .bytes = set.bytes,
          .unwritten_bytes = set.unwritten_bytes,
          .files_without_extents = set.unknown_files};
}

StorageProbeResult::TrainRun ToResult(const TrainRun& run) {
  StorageProbeResult::TrainRun result{.accelerators = run.accelerators,
                                      .utilisation_percent = Percent(run.train.Utilisation()),
                                      .samples_per_s = run.train.SamplesPerSecond(),
                                      .steps = run.train.steps,
                                      .wall_s = Seconds(run.train.wall),
                                      .errors = run.train.reads.errors,
                                      .cached_share_by_epoch = {},
                                      .bytes_asked = run.train.reads.bytes,
                                      .machine = ToResult(run.machine)};
  for (const auto& [cached, asked] : run.train.epochs)
    if (asked > 0)
      result.cached_share_by_epoch.push_back(static_cast<double>(cached) / static_cast<double>(asked));
  return result;
}

StorageProbeResult::Frames ToResult(const InferResult& result) {
  return {.planned = result.planned,
          .answered = result.answered,
          .in_time = result.in_time,
          .in_time_percent = Percent(result.InTimeShare()),
          .response_us = ToMicroseconds(result.response_ns),
          .service_us = ToMicroseconds(result.service_ns)};
}

StorageProbeResult::Phases ToResult(const MixReport::Phases& phases) {
  return {.train = {.utilisation_percent = Percent(phases.train.Utilisation()),
                    .samples_per_s = phases.train.SamplesPerSecond()},
          .infer = ToResult(phases.infer),
          .stream = {.bytes_per_s = phases.stream.BytesPerSecond()}};
}

std::optional<double> RatioOf(std::optional<double> together, std::optional<double> alone) {
  return together && alone && *alone > 0 ? std::optional(*together / *alone) : std::nullopt;
}

results::HostProbeResult::Rate ToRate(const HostRate& rate, double scale = 1) {
  return {.one_thread = rate.one_thread * scale, .all_threads = rate.all_threads * scale};
}

std::optional<results::HostProbeResult::Rate> ToRate(const std::optional<HostRate>& rate) {
  return rate ? std::optional(ToRate(*rate)) : std::nullopt;
}

template <typename Runs>
StorageVerdict JudgeRuns(const Runs& runs, const SetFacts& set, bool wants_cold) {
  ReadTally reads;
  MachineUse worst;
  for (const auto& run : runs) {
    reads.Merge(run.result.reads);
    worst = Worse(worst, run.machine);
  }
  StorageVerdict verdict;
  JudgeReads(reads, set, wants_cold, verdict);
  for (const auto& run : runs) JudgeDelivery(run.result.reads.bytes, run.machine, wants_cold, verdict);
  JudgeMachine(worst, verdict);
  return verdict;
}

StorageProbeResult::Estimate ToResult(const Estimate& estimate) {
  return {.value = estimate.value, .low = estimate.low, .high = estimate.high};
}

StorageProbeResult::Latency ToResult(const LatencyAnswer& answer) {
  StorageProbeResult::Latency result{.added_us = 1e6 * Seconds(answer.added),
                                     .demand_samples_per_s = answer.demand_samples_per_s,
                                     .reads_in_flight_enough = answer.enough,
                                     .levels = {}};
  for (const LatencyLevel& level : answer.levels)
    result.levels.push_back({.reads_in_flight = level.reads_in_flight,
                             .samples_per_s = ToResult(level.samples_per_s),
                             .delayed_samples_per_s = ToResult(level.delayed_samples_per_s),
                             .kept = ToResult(level.kept)});
  return result;
}

// Returns the worse of two verdicts; an empty one is none.
std::string WorseOf(const std::string& a, const std::string& b) {
  using results::Standing;
  for (const Standing standing : {Standing::kInvalid, Standing::kSuspect, Standing::kValid})
    for (const std::string& one : {a, b})
      if (one == results::ToString(standing)) return one;
  return b;
}

std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

StorageProbeResult::Host ToResult(const StorageHost& host, int rank) {
  StorageProbeResult::Host result{.name = EscapeBytes(host.name),
                                  .rank = rank,
                                  .lost = host.lost,
                                  .utilisation_percent = Percent(host.utilisation),
                                  .samples_per_s = host.samples_per_s,
                                  .barrier_us = ToMicroseconds(host.barrier_ns)};
  if (host.clock) {
    result.clock_offset_us = Microseconds(host.clock->offset);
    result.clock_error_us = Microseconds(host.clock->error);
  }
  std::vector<double> ended_s;
  for (const Duration ended : host.ended) ended_s.push_back(Seconds(ended));
  result.ended_s = Median(std::move(ended_s));
  if (host.rate) {
    result.samples_per_s_with_those_before = ToResult(host.rate->samples_per_s);
    if (host.rate->share) result.share = ToResult(*host.rate->share);
  }
  return result;
}

double MeanBytes(const SetFacts& set) {
  return set.samples > 0 ? static_cast<double>(set.bytes) / static_cast<double>(set.samples) : 0;
}

}  // namespace

StorageProbeResult MakeResult(const TrainReport& report) {
  const TrainFacts& facts = report.facts;
  stats::Histogram late;
  StallTimes each;
  for (const TrainRun& run : facts.runs) {
    late.Merge(run.train.late_ns);
    each.Merge(run.train.stall_times);
  }
  const Stalls stalls = facts.AllStalls();
  const StorageBottleneck bottleneck = FindBottleneck(facts);
  const EpochCounts epochs = CountEpochs(facts.runs);
  StorageProbeResult::Train train{.profile = std::string(report.profile.name),
                                  .accelerators = {.value = report.fed.value,
                                                   .low = report.fed.low,
                                                   .high = report.fed.high,
                                                   .more_may_be_fed = report.fed.more_may_be_fed},
                                  .least_utilisation_percent = 100 * report.profile.least_utilisation,
                                  .demand_samples_per_s = report.demand_samples_per_s,
                                  .reads_in_flight_needed = report.reads_in_flight_needed,
                                  .more_threads_gain = facts.more_threads_gain,
                                  .utilisation_percent = Percent(facts.MedianUtilisation()),
                                  .samples_per_s = facts.MedianSamplesPerSecond(),
                                  .bytes_per_s = facts.MedianBytesPerSecond(),
                                  .ceiling_samples_per_s = facts.ceiling_samples_per_s,
                                  .timer_late_us = ToMicroseconds(late),
                                  .stall_s = {.queue = Seconds(stalls.queue),
                                              .open = Seconds(stalls.open),
                                              .read = Seconds(stalls.read),
                                              .close = Seconds(stalls.close),
                                              .decode = Seconds(stalls.decode),
                                              .augment = Seconds(stalls.augment),
                                              .hosts = Seconds(stalls.hosts)},
                                  .stall_us = {.queue = ToMicroseconds(each.queue),
                                               .open = ToMicroseconds(each.open),
                                               .read = ToMicroseconds(each.read),
                                               .close = ToMicroseconds(each.close),
                                               .decode = ToMicroseconds(each.decode),
                                               .augment = ToMicroseconds(each.augment),
                                               .hosts = ToMicroseconds(each.hosts)},
                                  .bottleneck = {.stage = bottleneck.stage, .share = bottleneck.share},
                                  .sample_bytes = MeanBytes(facts.set),
                                  .batch = report.profile.batch,
                                  .decoded = facts.decoded,
                                  .units = {},
                                  .epochs = {.whole = epochs.whole, .each_once = epochs.exact},
                                  .hosts = {},
                                  .runs = {}};
  if (report.profile.step > Duration{}) train.step_ms = 1e3 * Seconds(report.profile.step);
  for (const UnitRate& unit : report.units) {
    StorageProbeResult::Unit one{.path = EscapeBytes(unit.path),
                                 .samples_per_s = ToResult(unit.samples_per_s)};
    if (unit.share) one.share = ToResult(*unit.share);
    if (unit.alone) one.alone_samples_per_s = ToResult(*unit.alone);
    train.units.push_back(std::move(one));
  }
  if (report.latency) train.latency = ToResult(*report.latency);
  for (const TrainRun& run : report.runs) train.runs.push_back(ToResult(run));
  StorageProbeResult result{.phase = "train", .train = std::move(train)};
  result.reads = ToResult(facts.Reads());
  result.set = ToResult(facts.set);
  result.verdict = ToResult(Judge(facts));
  return result;
}

StorageProbeResult MakeResult(const HostsReport& report) {
  StorageProbeResult result = MakeResult(report.train);
  stats::Histogram barrier_ns;
  for (const StorageHost& host : report.hosts) {
    result.train->hosts.push_back(ToResult(host, static_cast<int>(result.train->hosts.size())));
    barrier_ns.Merge(host.barrier_ns);
  }
  result.train->barrier_us = IfAny(barrier_ns);
  StorageVerdict verdict = Judge(report.train.facts);
  JudgeHosts(report, verdict);
  result.verdict = ToResult(verdict);
  return result;
}

StorageProbeResult MakeResult(const EtlReport& report) {
  const StorageBottleneck bottleneck = EtlBottleneck(report.runs);
  StorageProbeResult::Etl etl{
      .stages_s = {}, .bottleneck = {.stage = bottleneck.stage, .share = bottleneck.share}, .runs = {}};
  std::vector<double> rates, in, out;
  ReadTally reads;
  MachineUse worst;
  int64_t rejected = 0;
  for (const EtlRun& run : report.runs) {
    const EtlFigures& figures = run.figures;
    const auto rate = figures.ImagesPerSecond();
    const double wall_s = Seconds(figures.wall);
    if (rate) {
      rates.push_back(*rate);
      in.push_back(static_cast<double>(figures.bytes_in) / wall_s);
      out.push_back(static_cast<double>(figures.bytes_out) / wall_s);
    }
    etl.workers = figures.workers;
    etl.stages_s.read += Seconds(figures.read);
    etl.stages_s.decode += Seconds(figures.decode);
    etl.stages_s.resize += Seconds(figures.resize);
    etl.stages_s.encode += Seconds(figures.encode);
    etl.stages_s.write += Seconds(figures.write);
    etl.runs.push_back({.images = figures.images,
                        .rejected = figures.rejected,
                        .bytes_in = figures.bytes_in,
                        .bytes_out = figures.bytes_out,
                        .wall_s = wall_s,
                        .images_per_s = rate,
                        .machine = ToResult(run.machine)});
    rejected += figures.rejected;
    reads.Merge(run.reads);
    worst = Worse(worst, run.machine);
  }
  etl.images_per_s = Median(rates);
  etl.bytes_in_per_s = Median(in);
  etl.bytes_out_per_s = Median(out);
  StorageVerdict verdict;
  JudgeReads(reads, report.set, report.wants_cold, verdict);
  if (!report.hung_write.empty()) verdict.Add(results::Standing::kInvalid, "hung", report.hung_write);
  for (const EtlRun& run : report.runs)
    JudgeDelivery(run.reads.bytes, run.machine, report.wants_cold, verdict);
  if (rejected > reads.errors)
    verdict.Add(results::Standing::kSuspect, ToString(results::Reason::kErrors),
                fmt::format("{} originals could not be decoded", rejected - reads.errors));
  JudgeMachine(worst, verdict);
  StorageProbeResult result{.phase = "etl", .etl = std::move(etl)};
  result.reads = ToResult(reads);
  result.set = ToResult(report.set);
  result.verdict = ToResult(verdict);
  return result;
}

StorageProbeResult MakeResult(std::vector<StorageProbeResult> phases) {
  StorageProbeResult all{.phase = "all"};
  for (const StorageProbeResult& phase : phases) {
    all.set = phase.set;
    all.reads.errors += phase.reads.errors;
    all.reads.first_errors.insert(all.reads.first_errors.end(), phase.reads.first_errors.begin(),
                                  phase.reads.first_errors.end());
    all.reads.hung.insert(all.reads.hung.end(), phase.reads.hung.begin(), phase.reads.hung.end());
    all.verdict.verdict = WorseOf(all.verdict.verdict, phase.verdict.verdict);
    for (const auto& [reason, evidence] : phase.verdict.reasons)
      all.verdict.reasons.push_back({.reason = reason, .evidence = phase.phase + ": " + evidence});
  }
  all.phases = std::move(phases);
  return all;
}

StorageProbeResult MakeResult(const InferReport& report) {
  InferResult all;
  StorageProbeResult::Infer infer{.streams = report.options.streams,
                                  .frames_per_s = report.options.frames_per_s};
  for (const InferRun& run : report.runs) {
    all.planned += run.result.planned;
    all.answered += run.result.answered;
    all.in_time += run.result.in_time;
    all.response_ns.Merge(run.result.response_ns);
    all.service_ns.Merge(run.result.service_ns);
    all.reads.Merge(run.result.reads);
    infer.runs.push_back({.frames = ToResult(run.result), .machine = ToResult(run.machine)});
  }
  infer.frames = ToResult(all);
  infer.bottleneck.stage = InferBottleneck(report.runs);
  StorageProbeResult result{.phase = "infer"};
  result.infer = std::move(infer);
  result.reads = ToResult(all.reads);
  result.set = ToResult(report.set);
  result.verdict = ToResult(JudgeRuns(report.runs, report.set, report.wants_cold));
  return result;
}

StorageProbeResult MakeResult(const StreamReport& report) {
  StorageProbeResult::Stream stream{.block_bytes = report.options.block_bytes,
                                    .threads = report.options.threads};
  std::vector<double> rates;
  ReadTally reads;
  for (const StreamRun& run : report.runs) {
    const auto rate = run.result.BytesPerSecond();
    if (rate) rates.push_back(*rate);
    stream.runs.push_back(
        {.bytes_per_s = rate, .bytes_asked = run.result.reads.bytes, .machine = ToResult(run.machine)});
    reads.Merge(run.result.reads);
  }
  stream.bytes_per_s = Median(rates);
  StorageProbeResult result{.phase = "stream"};
  result.stream = std::move(stream);
  result.reads = ToResult(reads);
  result.set = ToResult(report.set);
  result.verdict = ToResult(JudgeRuns(report.runs, report.set, report.wants_cold));
  return result;
}

StorageProbeResult MakeResult(const MixReport& report) {
  const MixReport::Phases &alone = report.alone, &together = report.together;
  const auto p99 = [](const InferResult& infer) -> std::optional<double> {
    const auto ns = infer.response_ns.Quantile(0.99);
    return ns ? std::optional(static_cast<double>(*ns)) : std::nullopt;
  };
  StorageProbeResult result{.phase = "mix"};
  result.mix = {
      .alone = ToResult(alone),
      .together = ToResult(together),
      .together_over_alone = {
          .train_samples_per_s = RatioOf(together.train.SamplesPerSecond(), alone.train.SamplesPerSecond()),
          .stream_bytes_per_s = RatioOf(together.stream.BytesPerSecond(), alone.stream.BytesPerSecond()),
          .infer_p99_response = RatioOf(p99(together.infer), p99(alone.infer))}};
  ReadTally reads;
  for (const MixReport::Phases* phases : {&alone, &together}) {
    reads.Merge(phases->train.reads);
    reads.Merge(phases->infer.reads);
    reads.Merge(phases->stream.reads);
  }
  StorageVerdict verdict;
  JudgeReads(reads, report.set, report.wants_cold, verdict);
  JudgeMachine(report.machine, verdict);
  result.reads = ToResult(reads);
  result.set = ToResult(report.set);
  result.verdict = ToResult(verdict);
  return result;
}

results::HostProbeResult MakeResult(const HostReport& report) {
  const HostSpeed& speed = report.speed;
  return {.cores = speed.threads,
          .instruction_set = speed.arithmetic,
          .multiply_adds_per_s = {.f32 = ToRate(speed.f32_multiply_adds),
                                  .bf16 = ToRate(speed.bf16_multiply_adds),
                                  .int8 = ToRate(speed.int8_multiply_adds)},
          .memory_gb_per_s = {.read = ToRate(speed.memory_read_bytes, 1e-9),
                              .copy = ToRate(speed.memory_copy_bytes, 1e-9)},
          .clock_read_ns = speed.clock_read_ns,
          .system_call_ns = speed.system_call_ns,
          .timer_late_us = {.p50 = speed.timer_late_us, .p99 = speed.timer_late_p99_us},
          .wake_up_us = {.p50 = speed.wake_up_us, .p99 = speed.wake_up_p99_us},
          .loopback_us = {.p50 = speed.loopback_us, .p99 = speed.loopback_p99_us},
          .machine = ToResult(report.machine),
          .verdict = ToResult(report.verdict)};
}

}  // namespace weir::probe
