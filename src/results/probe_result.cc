#include "results/probe_result.h"

#include "base/fields.h"

namespace weir::results {

// Describe(fields, part) puts the keys of a part beside the others.

template <typename F>
void Describe(F& fields, Described<F, Percentiles>& times) {
  fields("p50", times.p50);
  fields("p90", times.p90);
  fields("p99", times.p99);
  fields("p99_9", times.p99_9);
  fields("max", times.max);
  fields("count", times.count);
}

template <typename F>
void Describe(F& fields, Described<F, ProbeMachine>& machine) {
  fields("bytes_from_device", machine.bytes_from_device);
  fields("bytes_from_mount", machine.bytes_from_mount);
  fields("foreign_cores", machine.foreign_cores);
  fields("steal_percent", machine.steal_percent);
}

template <typename F>
void Describe(F& fields, Described<F, ProbeVerdict::Cause>& cause) {
  fields("reason", cause.reason);
  fields("evidence", cause.evidence);
}

template <typename F>
void Describe(F& fields, Described<F, ProbeVerdict>& verdict) {
  fields("verdict", verdict.verdict);
  fields("reasons", verdict.reasons);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Reads>& reads) {
  fields("cached_share", reads.cached_share);
  fields("open_us", reads.open_us);
  fields("read_us", reads.read_us);
  fields("close_us", reads.close_us);
  fields("decode_us", reads.decode_us);
  fields("augment_us", reads.augment_us);
  fields("errors", reads.errors);
  fields("first_errors", reads.first_errors);
  fields("hung", reads.hung);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Set>& set) {
  fields("samples", set.samples);
  fields("bytes", set.bytes);
  fields("unwritten_bytes", set.unwritten_bytes);
  fields("files_without_extents", set.files_without_extents);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Bottleneck>& bottleneck) {
  fields("stage", bottleneck.stage);
  fields("share", bottleneck.share);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Fed>& fed) {
  fields("value", fed.value);
  fields("low", fed.low);
  fields("high", fed.high);
  fields("more_may_be_fed", fed.more_may_be_fed);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::StallSeconds>& stalls) {
  fields("queue", stalls.queue);
  fields("open", stalls.open);
  fields("read", stalls.read);
  fields("close", stalls.close);
  fields("decode", stalls.decode);
  fields("augment", stalls.augment);
  fields("hosts", stalls.hosts);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::StallTimes>& stalls) {
  fields("queue", stalls.queue);
  fields("open", stalls.open);
  fields("read", stalls.read);
  fields("close", stalls.close);
  fields("decode", stalls.decode);
  fields("augment", stalls.augment);
  fields("hosts", stalls.hosts);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Estimate>& estimate) {
  fields("value", estimate.value);
  fields("low", estimate.low);
  fields("high", estimate.high);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Unit>& unit) {
  fields("path", unit.path);
  fields("samples_per_s", unit.samples_per_s);
  fields("share", unit.share);
  fields("alone_samples_per_s", unit.alone_samples_per_s);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Host>& host) {
  fields("name", host.name);
  fields("rank", host.rank);
  fields("clock_offset_us", host.clock_offset_us);
  fields("clock_error_us", host.clock_error_us);
  fields("lost", host.lost);
  fields("utilisation_percent", host.utilisation_percent);
  fields("samples_per_s", host.samples_per_s);
  fields("ended_s", host.ended_s);
  fields("barrier_us", host.barrier_us);
  fields("samples_per_s_with_those_before", host.samples_per_s_with_those_before);
  fields("share", host.share);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Epochs>& epochs) {
  fields("whole", epochs.whole);
  fields("each_once", epochs.each_once);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::LatencyLevel>& level) {
  fields("reads_in_flight", level.reads_in_flight);
  fields("samples_per_s", level.samples_per_s);
  fields("delayed_samples_per_s", level.delayed_samples_per_s);
  fields("kept", level.kept);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Latency>& latency) {
  fields("added_us", latency.added_us);
  fields("demand_samples_per_s", latency.demand_samples_per_s);
  fields("reads_in_flight_enough", latency.reads_in_flight_enough);
  fields("levels", latency.levels);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::TrainRun>& run) {
  fields("accelerators", run.accelerators);
  fields("utilisation_percent", run.utilisation_percent);
  fields("samples_per_s", run.samples_per_s);
  fields("steps", run.steps);
  fields("wall_s", run.wall_s);
  fields("errors", run.errors);
  fields("cached_share_by_epoch", run.cached_share_by_epoch);
  fields("bytes_asked", run.bytes_asked);
  Describe(fields, run.machine);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Train>& train) {
  fields("profile", train.profile);
  fields("accelerators", train.accelerators);
  fields("least_utilisation_percent", train.least_utilisation_percent);
  fields("demand_samples_per_s", train.demand_samples_per_s);
  fields("reads_in_flight_needed", train.reads_in_flight_needed);
  fields("more_threads_gain", train.more_threads_gain);
  fields("utilisation_percent", train.utilisation_percent);
  fields("samples_per_s", train.samples_per_s);
  fields("bytes_per_s", train.bytes_per_s);
  fields("ceiling_samples_per_s", train.ceiling_samples_per_s);
  fields("timer_late_us", train.timer_late_us);
  fields("stall_s", train.stall_s);
  fields("stall_us", train.stall_us);
  fields("bottleneck", train.bottleneck);
  fields("sample_bytes", train.sample_bytes);
  fields("step_ms", train.step_ms);
  fields("batch", train.batch);
  fields("decoded", train.decoded);
  fields.Unless("units", train.units);
  fields("latency", train.latency);
  fields.IfAny("epochs", train.epochs);
  fields.Unless("hosts", train.hosts);
  fields("barrier_us", train.barrier_us);
  fields("runs", train.runs);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::EtlRun>& run) {
  fields("images", run.images);
  fields("rejected", run.rejected);
  fields("bytes_in", run.bytes_in);
  fields("bytes_out", run.bytes_out);
  fields("wall_s", run.wall_s);
  fields("images_per_s", run.images_per_s);
  Describe(fields, run.machine);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::EtlSeconds>& stages) {
  fields("read", stages.read);
  fields("decode", stages.decode);
  fields("resize", stages.resize);
  fields("encode", stages.encode);
  fields("write", stages.write);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Etl>& etl) {
  fields("workers", etl.workers);
  fields("images_per_s", etl.images_per_s);
  fields("bytes_in_per_s", etl.bytes_in_per_s);
  fields("bytes_out_per_s", etl.bytes_out_per_s);
  fields("stages_s", etl.stages_s);
  fields("bottleneck", etl.bottleneck);
  fields("runs", etl.runs);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Frames>& frames) {
  fields("planned", frames.planned);
  fields("answered", frames.answered);
  fields("in_time", frames.in_time);
  fields("in_time_percent", frames.in_time_percent);
  fields("response_us", frames.response_us);
  fields("service_us", frames.service_us);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::InferRun>& run) {
  Describe(fields, run.frames);
  Describe(fields, run.machine);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Infer>& infer) {
  fields("streams", infer.streams);
  fields("frames_per_s", infer.frames_per_s);
  fields("frames", infer.frames);
  fields("bottleneck", infer.bottleneck);
  fields("runs", infer.runs);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::StreamRun>& run) {
  fields("bytes_per_s", run.bytes_per_s);
  fields("bytes_asked", run.bytes_asked);
  Describe(fields, run.machine);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Stream>& stream) {
  fields("block_bytes", stream.block_bytes);
  fields("threads", stream.threads);
  fields("bytes_per_s", stream.bytes_per_s);
  fields("runs", stream.runs);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::TrainFigures>& train) {
  fields("utilisation_percent", train.utilisation_percent);
  fields("samples_per_s", train.samples_per_s);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::StreamFigures>& stream) {
  fields("bytes_per_s", stream.bytes_per_s);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Phases>& phases) {
  fields("train", phases.train);
  fields("infer", phases.infer);
  fields("stream", phases.stream);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Interference>& kept) {
  fields("train_samples_per_s", kept.train_samples_per_s);
  fields("stream_bytes_per_s", kept.stream_bytes_per_s);
  fields("infer_p99_response", kept.infer_p99_response);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult::Mix>& mix) {
  fields("alone", mix.alone);
  fields("together", mix.together);
  fields("together_over_alone", mix.together_over_alone);
}

template <typename F>
void Describe(F& fields, Described<F, StorageProbeResult>& result) {
  fields("phase", result.phase);
  fields.Beside("workers", result.etl);
  fields.Beside("profile", result.train);
  fields.Beside("frames", result.infer);
  fields.Beside("block_bytes", result.stream);
  fields.Beside("alone", result.mix);
  fields.Unless("phases", result.phases);
  Describe(fields, result.reads);
  fields("set", result.set);
  Describe(fields, result.verdict);
  fields("provenance", result.provenance);
}

template <typename F>
void Describe(F& fields, Described<F, HostProbeResult::Rate>& rate) {
  fields("one_thread", rate.one_thread);
  fields("all_threads", rate.all_threads);
}

template <typename F>
void Describe(F& fields, Described<F, HostProbeResult::MultiplyAdds>& rates) {
  fields("f32", rates.f32);
  fields("bf16", rates.bf16);
  fields("int8", rates.int8);
}

template <typename F>
void Describe(F& fields, Described<F, HostProbeResult::Memory>& memory) {
  fields("read", memory.read);
  fields("copy", memory.copy);
}

template <typename F>
void Describe(F& fields, Described<F, HostProbeResult::Times>& times) {
  fields("p50", times.p50);
  fields("p99", times.p99);
}

template <typename F>
void Describe(F& fields, Described<F, HostProbeResult>& host) {
  fields("cores", host.cores);
  fields("instruction_set", host.instruction_set);
  fields("multiply_adds_per_s", host.multiply_adds_per_s);
  fields("memory_gb_per_s", host.memory_gb_per_s);
  fields("clock_read_ns", host.clock_read_ns);
  fields("system_call_ns", host.system_call_ns);
  fields("timer_late_us", host.timer_late_us);
  fields("wake_up_us", host.wake_up_us);
  fields("loopback_us", host.loopback_us);
  Describe(fields, host.machine);
  Describe(fields, host.verdict);
  fields("provenance", host.provenance);
}

Json StorageProbeResult::ToJson() const { return FieldsToJson(*this); }

Result<StorageProbeResult> StorageProbeResult::FromJson(const Json& json) {
  return FieldsFromJson<StorageProbeResult>(json);
}

Json HostProbeResult::ToJson() const { return FieldsToJson(*this); }

Result<HostProbeResult> HostProbeResult::FromJson(const Json& json) {
  return FieldsFromJson<HostProbeResult>(json);
}

}  // namespace weir::results
