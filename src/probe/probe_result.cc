#include "probe/probe_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/count.h"

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

std::optional<double> Percent(std::optional<double> share) {
  return share ? std::optional(100 * *share) : std::nullopt;
}

StorageProbeResult::Reads ToResult(const ReadTally& reads) {
  return {.cached_share = reads.CachedShare(),
          .open_us = ToMicroseconds(reads.open_ns),
          .read_us = ToMicroseconds(reads.read_ns),
          .close_us = ToMicroseconds(reads.close_ns),
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
    result.cached_share_by_epoch.push_back(
        asked > 0 ? static_cast<double>(cached) / static_cast<double>(asked) : 0);
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
  JudgeMachine(worst, verdict);
  return verdict;
}

std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string TimesText(const char* name, const results::Percentiles& times) {
  if (!times.p50 || !times.p99 || !times.max) return "";
  return fmt::format("  {:<13}p50 {} us, p99 {} us, max {} us\n", name, Short(*times.p50), Short(*times.p99),
                     Short(*times.max));
}

std::string VerdictText(const TextStyle& style, const results::ProbeVerdict& verdict) {
  std::string text = fmt::format("{} {}\n", style.Bold("verdict"), verdict.verdict);
  for (const auto& [reason, evidence] : verdict.reasons) text += fmt::format("  {}: {}\n", reason, evidence);
  return text;
}

std::string FedText(const TextStyle& style, const StorageProbeResult::Train& train) {
  const StorageProbeResult::Fed& fed = train.accelerators;
  if (!fed.value)
    return fmt::format("{} none of the numbers of accelerators asked about\n", style.Bold("feeds"));
  std::string text =
      fmt::format("{} {} of {}", style.Bold("feeds"), Count(*fed.value, "accelerator"), train.profile);
  if (fed.low != fed.high)
    text += fmt::format(" ({} in every repeat, {} in the best)", fed.low.value_or(0), fed.high.value_or(0));
  return text + (fed.more_may_be_fed ? ", perhaps more: raise --accelerators\n" : "\n");
}

std::string TrainText(const TextStyle& style, const StorageProbeResult& result) {
  const StorageProbeResult::Train& train = *result.train;
  std::string text = FedText(style, train);
  if (train.utilisation_percent)
    text += fmt::format(
        "  utilisation  {:.2f} %, at least {:.0f} % is wanted; bottleneck {} ({:.0f} % of the time)\n",
        *train.utilisation_percent, train.least_utilisation_percent, train.bottleneck.stage,
        100 * train.bottleneck.share.value_or(0));
  if (train.samples_per_s)
    text += fmt::format("  throughput   {} samples/s, {}/s; the accelerators want {} samples/s\n",
                        Short(*train.samples_per_s), Size(train.bytes_per_s.value_or(0)),
                        Short(train.demand_samples_per_s));
  if (train.ceiling_samples_per_s)
    text += fmt::format("  ceiling      {} samples/s by this program from memory\n",
                        Short(*train.ceiling_samples_per_s));
  if (train.reads_in_flight_needed)
    text += fmt::format("  in flight    {} reads for that demand; --threads gives as many\n",
                        Short(*train.reads_in_flight_needed));
  if (result.reads.cached_share)
    text += fmt::format("  cached       {:.2f} % of the bytes before they were read\n",
                        100 * *result.reads.cached_share);
  return text + TimesText("open", result.reads.open_us) + TimesText("read", result.reads.read_us) +
         TimesText("close", result.reads.close_us);
}

std::string InferText(const TextStyle& style, const StorageProbeResult& result) {
  const StorageProbeResult::Frames& frames = result.infer->frames;
  std::string text = fmt::format("{} {} of {} frames in time", style.Bold("answered"), Count(frames.in_time),
                                 Count(frames.planned));
  if (frames.in_time_percent) text += fmt::format(" ({:.2f} %)", *frames.in_time_percent);
  text += fmt::format("; most of the time goes to {}\n", result.infer->bottleneck.stage);
  return text + TimesText("response", frames.response_us) + TimesText("open", result.reads.open_us) +
         TimesText("read", result.reads.read_us) + TimesText("close", result.reads.close_us);
}

std::string StreamText(const TextStyle& style, const StorageProbeResult& result) {
  std::string text;
  if (result.stream->bytes_per_s)
    text += fmt::format("{} {}/s in blocks of {}\n", style.Bold("streams"), Size(*result.stream->bytes_per_s),
                        Size(static_cast<double>(result.stream->block_bytes)));
  return text + TimesText("open", result.reads.open_us) + TimesText("block", result.reads.read_us);
}

std::string MixText(const TextStyle& style, const StorageProbeResult& result) {
  const StorageProbeResult::Interference& kept = result.mix->together_over_alone;
  std::string text = fmt::format("{} all phases at once, over each alone\n", style.Bold("interference"));
  for (const auto& [value, what] : {std::pair{kept.train_samples_per_s, "training throughput"},
                                    std::pair{kept.stream_bytes_per_s, "streaming throughput"},
                                    std::pair{kept.infer_p99_response, "inference p99 response time"}}) {
    if (value) text += fmt::format("  {:<28}{:.2f}\n", what, *value);
  }
  return text;
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
  StorageProbeResult::Train train{.profile = std::string(report.profile.name),
                                  .accelerators = {.value = report.fed.value,
                                                   .low = report.fed.low,
                                                   .high = report.fed.high,
                                                   .more_may_be_fed = report.fed.more_may_be_fed},
                                  .least_utilisation_percent = 100 * report.profile.least_utilisation,
                                  .demand_samples_per_s = report.demand_samples_per_s,
                                  .reads_in_flight_needed = report.reads_in_flight_needed,
                                  .utilisation_percent = Percent(facts.MedianUtilisation()),
                                  .samples_per_s = facts.MedianSamplesPerSecond(),
                                  .bytes_per_s = facts.MedianBytesPerSecond(),
                                  .ceiling_samples_per_s = facts.ceiling_samples_per_s,
                                  .timer_late_us = ToMicroseconds(late),
                                  .stall_s = {.queue = Seconds(stalls.queue),
                                              .open = Seconds(stalls.open),
                                              .read = Seconds(stalls.read),
                                              .close = Seconds(stalls.close)},
                                  .stall_us = {.queue = ToMicroseconds(each.queue),
                                               .open = ToMicroseconds(each.open),
                                               .read = ToMicroseconds(each.read),
                                               .close = ToMicroseconds(each.close)},
                                  .bottleneck = {.stage = bottleneck.stage, .share = bottleneck.share},
                                  .runs = {}};
  for (const TrainRun& run : report.runs) train.runs.push_back(ToResult(run));
  StorageProbeResult result{.phase = "train", .train = std::move(train)};
  result.reads = ToResult(facts.Reads());
  result.set = ToResult(facts.set);
  result.verdict = ToResult(Judge(facts));
  return result;
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

std::string ProbeText(const TextStyle& style, const StorageProbeResult& result) {
  const std::string text = result.train    ? TrainText(style, result)
                           : result.infer  ? InferText(style, result)
                           : result.stream ? StreamText(style, result)
                                           : MixText(style, result);
  return text + VerdictText(style, result.verdict);
}

std::string ProbeText(const TextStyle& style, const results::HostProbeResult& result) {
  std::string text =
      fmt::format("{} {}, {}\n", style.Bold("host"), Count(result.cores, "core"), result.instruction_set);
  const auto add_rate = [&text](const char* name, const results::HostProbeResult::Rate& rate, double scale,
                                const char* unit) {
    text += fmt::format("  {:<14}{} {} on one thread, {} on all\n", name, Short(rate.one_thread * scale),
                        unit, Short(rate.all_threads * scale));
  };
  const auto& adds = result.multiply_adds_per_s;
  add_rate("f32", adds.f32, 1e-9, "G multiply-adds/s");
  if (adds.bf16) add_rate("bf16", *adds.bf16, 1e-9, "G multiply-adds/s");
  if (adds.int8) add_rate("int8", *adds.int8, 1e-9, "G multiply-adds/s");
  add_rate("memory read", result.memory_gb_per_s.read, 1, "GB/s");
  add_rate("memory copy", result.memory_gb_per_s.copy, 1, "GB/s");
  text += fmt::format("  clock reading {} ns, system call {} ns\n", Short(result.clock_read_ns),
                      Short(result.system_call_ns));
  for (const auto& [name, times] :
       {std::pair{"timer late", result.timer_late_us}, std::pair{"wake-up", result.wake_up_us},
        std::pair{"loopback", result.loopback_us}})
    text += fmt::format("  {:<14}p50 {} us, p99 {} us\n", name, Short(times.p50), Short(times.p99));
  return text + VerdictText(style, result.verdict);
}

}  // namespace weir::probe
