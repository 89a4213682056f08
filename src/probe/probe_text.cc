// Lines of the results of probes, for people.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/count.h"
#include "probe/probe_result.h"

namespace weir::probe {
namespace {

using results::StorageProbeResult;

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

std::string OptionalTimesText(const char* name, const std::optional<results::Percentiles>& times) {
  return times ? TimesText(name, *times) : "";
}

std::string ToText(const StorageProbeResult::Estimate& estimate) {
  if (!estimate.low || !estimate.high) return fmt::format("{:.2f}", estimate.value);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", estimate.value, *estimate.low, *estimate.high);
}

// The share that each added unit gives.
std::string UnitsText(const StorageProbeResult::Train& train) {
  std::string text;
  for (const StorageProbeResult::Unit& unit : train.units) {
    text += fmt::format("  {:<13}{} samples/s", text.empty() ? "units" : "", Short(unit.samples_per_s.value));
    if (unit.alone_samples_per_s && !unit.share) {
      text += fmt::format(" with {} ({} alone)\n", unit.path, Short(unit.alone_samples_per_s->value));
      continue;
    }
    text += unit.share
                ? fmt::format(" with {}, which gives {} of its share\n", unit.path, ToText(*unit.share))
                : fmt::format(" from {}\n", unit.path);
  }
  return text;
}

std::string LatencyText(const StorageProbeResult::Train& train) {
  if (!train.latency) return "";
  const StorageProbeResult::Latency& latency = *train.latency;
  std::string text = fmt::format("  latency      {} us more ", Short(latency.added_us));
  text += latency.reads_in_flight_enough
              ? fmt::format("do not matter from {} reads in flight on\n", *latency.reads_in_flight_enough)
              : "matter at every number of reads in flight that was tried\n";
  for (const StorageProbeResult::LatencyLevel& level : latency.levels)
    text += fmt::format("               {:>3} in flight: {} of {} samples/s, {} kept\n",
                        level.reads_in_flight, Short(level.delayed_samples_per_s.value),
                        Short(level.samples_per_s.value), ToText(level.kept));
  return text;
}

// The hosts that read together: what each did, and what each added.
std::string HostsText(const StorageProbeResult::Train& train) {
  std::string text;
  for (const StorageProbeResult::Host& host : train.hosts) {
    text += fmt::format("  {:<13}{}", text.empty() ? "hosts" : "", host.name);
    if (host.samples_per_s) text += fmt::format(": {} samples/s", Short(*host.samples_per_s));
    if (host.utilisation_percent) text += fmt::format(", utilisation {:.2f} %", *host.utilisation_percent);
    if (host.ended_s) text += fmt::format(", ended after {:.3f} s", *host.ended_s);
    if (host.share) text += fmt::format("; gives {} of its share", ToText(*host.share));
    if (host.lost) text += fmt::format("; lost: {}", *host.lost);
    text += "\n";
  }
  return train.barrier_us ? text + TimesText("barrier", *train.barrier_us) : text;
}

std::string FedText(const TextStyle& style, const StorageProbeResult::Train& train) {
  const StorageProbeResult::Fed& fed = train.accelerators;
  if (!train.step_ms) return fmt::format("{} samples as fast as they come\n", style.Bold("reads"));
  if (!fed.value)
    return fmt::format("{} none of the numbers of accelerators asked about\n", style.Bold("feeds"));
  std::string text =
      fmt::format("{} {} of {}", style.Bold("feeds"), Count(*fed.value, "accelerator"), train.profile);
  if (fed.low != fed.high)
    text += fmt::format(" ({} in every repeat, {} in the best)", fed.low.value_or(0), fed.high.value_or(0));
  if (!train.hosts.empty()) text += fmt::format(" on each of {}", Count(std::ssize(train.hosts), "host"));
  return text + (fed.more_may_be_fed ? ", perhaps more: raise --accelerators\n" : "\n");
}

// The remedy, by the measurement with twice the threads.
std::string WhatThreadsGive(const StorageProbeResult::Train& train) {
  if (!train.more_threads_gain) return "";
  if (train.bottleneck.stage == "storage")
    return fmt::format("; the storage is saturated: twice the --threads read {:.2f} times as much",
                       *train.more_threads_gain);
  return fmt::format("; more --threads help: twice as many read {:.2f} times as much",
                     *train.more_threads_gain);
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
    text += fmt::format(
        "  throughput   {} samples/s, {}/s{}\n", Short(*train.samples_per_s),
        Size(train.bytes_per_s.value_or(0)),
        train.step_ms ? fmt::format("; the accelerators want {} samples/s", Short(train.demand_samples_per_s))
                      : "");
  if (train.ceiling_samples_per_s)
    text += fmt::format("  ceiling      {} samples/s by this program from memory\n",
                        Short(*train.ceiling_samples_per_s));
  text += UnitsText(train) + LatencyText(train) + HostsText(train);
  if (train.reads_in_flight_needed)
    text += fmt::format("  in flight    {} reads for that demand{}\n", Short(*train.reads_in_flight_needed),
                        WhatThreadsGive(train));
  if (result.reads.cached_share)
    text += fmt::format("  cached       {:.2f} % of the bytes before they were read\n",
                        100 * *result.reads.cached_share);
  return text + TimesText("open", result.reads.open_us) + TimesText("read", result.reads.read_us) +
         TimesText("close", result.reads.close_us) + OptionalTimesText("decode", result.reads.decode_us) +
         OptionalTimesText("augment", result.reads.augment_us);
}

std::string EtlText(const TextStyle& style, const StorageProbeResult& result) {
  const StorageProbeResult::Etl& etl = *result.etl;
  std::string text;
  if (etl.images_per_s)
    text += fmt::format("{} {} images/s, {}/s in, {}/s out, by {}\n", style.Bold("prepares"),
                        Short(*etl.images_per_s), Size(etl.bytes_in_per_s.value_or(0)),
                        Size(etl.bytes_out_per_s.value_or(0)), Count(etl.workers, "thread"));
  text += fmt::format("  bottleneck   {} ({:.0f} % of the threads' time)\n", etl.bottleneck.stage,
                      100 * etl.bottleneck.share.value_or(0));
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

std::string ProbeText(const TextStyle& style, const StorageProbeResult& result) {
  if (!result.phases.empty()) {
    std::string all;
    for (const StorageProbeResult& phase : result.phases) all += ProbeText(style, phase);
    return all;
  }
  const std::string text = result.train    ? TrainText(style, result)
                           : result.etl    ? EtlText(style, result)
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
