#include "results/watch_result.h"

#include "results/describe.h"
#include "results/schema_version.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, WatchResult::Frames>& frames) {
  fields("captured", frames.captured);
  fields("answered", frames.answered);
  fields("in_time", frames.in_time);
  fields("dropped", frames.dropped);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::Times>& times) {
  fields("n", times.n);
  fields("mean", times.mean);
  fields("min", times.min);
  fields("p50", times.p50);
  fields("p90", times.p90);
  fields("p95", times.p95);
  fields("p99", times.p99);
  fields("p99_9", times.p99_9);
  fields("max", times.max);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::Fault>& fault) {
  fields("kind", fault.kind);
  fields("count", fault.count);
  fields("message", fault.message);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::ClockReport>& clock) {
  fields("offset_change_ms", clock.offset_change_ms);
  fields("drift_ppm", clock.drift_ppm);
  fields("steps", clock.steps);
  fields("largest_step_ms", clock.largest_step_ms);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::Stream>& stream) {
  fields("name", stream.name);
  fields("frames", stream.frames);
  fields("in_time_percent", stream.in_time_percent);
  fields("latency_ms", stream.latency_ms);
  fields("capture_source", stream.capture_source);
  fields("capture_error_ms", stream.capture_error_ms);
  fields("connects", stream.connects);
  fields("faults", stream.faults);
  fields("produced", stream.produced);
  fields("tracks", stream.tracks);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::Trial>& trial) {
  fields("streams", trial.streams);
  fields("in_time_percent", trial.in_time_percent);
  fields("holds", trial.holds);
  fields("confirms", trial.confirms);
  fields("p99_ms", trial.p99_ms);
  fields("bottleneck", trial.bottleneck);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::FindMax>& find) {
  fields("streams", find.streams);
  fields("confirmations", find.confirmations);
  fields("limited_by_most", find.limited_by_most);
  fields("trials", find.trials);
  fields("bottleneck", find.bottleneck);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::Busy>& busy) {
  fields("cpu", busy.cpu);
  fields("decode", busy.decode);
  fields("identify", busy.identify);
  fields("infer", busy.infer);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::StorageDelay>& delay) {
  fields("delay_us", delay.delay_us);
  fields("lookups", delay.lookups);
  fields("p99_ms", delay.p99_ms);
  fields("p99_without_ms", delay.p99_without_ms);
  fields("in_time_percent", delay.in_time_percent);
  fields("in_time_without_percent", delay.in_time_without_percent);
  fields("text", delay.text);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult::Webhook>& webhook) {
  fields("posted", webhook.posted);
  fields("requests", webhook.requests);
  fields("retries", webhook.retries);
  fields("refused", webhook.refused);
  fields("dropped", webhook.dropped);
  fields.Unless("error", webhook.error);
}

template <typename F>
void Describe(F& fields, Described<F, WatchResult>& result) {
  fields("model", result.model);
  fields("detector", result.detector);
  fields("identities", result.identities);
  fields("engine", result.engine);
  fields("deadline_ms", result.deadline_ms);
  fields("policy", result.policy);
  fields("streams", result.streams);
  fields("wall_s", result.wall_s);
  fields("interrupted", result.interrupted);
  fields("frames", result.frames);
  fields("in_time_percent", result.in_time_percent);
  fields("latency_ms", result.latency_ms);
  fields("stages_ms", result.stages_ms);
  fields("per_stream", result.per_stream);
  fields("clock", result.clock);
  fields("resources", result.resources);
  fields("server_resources", result.server_resources);
  fields("objects", result.objects);
  fields("embeddings", result.embeddings);
  fields("identified", result.identified);
  fields("busy", result.busy);
  fields("cpu_ms_per_frame", result.cpu_ms_per_frame);
  fields.Unless("made_cpu_s", result.made_cpu_s);
  fields("bottleneck", result.bottleneck);
  fields("find_max", result.find_max);
  fields("storage_delay", result.storage_delay);
  fields("webhook", result.webhook);
  fields.Unless("lines_dropped", result.lines_dropped);
  fields.Unless("provenance", result.provenance);
  fields.Unless("command", result.command);
}

Json WatchResult::ToJson() const {
  Json json{{kSchemaVersionKey, kSchemaVersion}};
  json.update(FieldsToJson(*this));
  return json;
}

Result<WatchResult> WatchResult::FromJson(const Json& json) {
  TRY_STATUS(CheckSchemaVersion(json, "the result of weir watch"));
  return FieldsFromJson<WatchResult>(json);
}

template <typename F>
void Describe(F& fields, Described<F, WatchFrame>& frame) {
  fields("stream", frame.stream);
  fields("sequence", frame.sequence);
  fields("counter", frame.counter);
  fields("fate", frame.fate);
  fields("count", frame.count);
  fields("captured_s", frame.captured_s);
  fields("capture_source", frame.capture_source);
  fields("latency_ms", frame.latency_ms);
  fields("stages_ms", frame.stages_ms);
}

std::string WatchFrame::ToLine() const { return DumpJson(FieldsToJson(*this)) + "\n"; }

template <typename F>
void Describe(F& fields, Described<F, WatchEvent::Object>& object) {
  fields.Unless("box", object.box);
  fields("score", object.score);
  fields("track", object.track);
  fields("class", object.class_index);
  fields.Unless("label", object.label);
  fields.Unless("name", object.name);
  fields("similarity", object.similarity);
}

template <typename F>
void Describe(F& fields, Described<F, WatchEvent>& event) {
  fields("stream", event.stream);
  fields("sequence", event.sequence);
  fields("captured_s", event.captured_s);
  fields("capture_source", event.capture_source);
  fields("latency_ms", event.latency_ms);
  fields("in_time", event.in_time);
  fields("objects", event.objects);
}

Json WatchEvent::ToJson() const { return FieldsToJson(*this); }
std::string WatchEvent::ToLine() const { return DumpJson(ToJson()) + "\n"; }

std::string WebhookBody(const std::vector<WatchEvent>& events) {
  Json list = Json::array();
  for (const WatchEvent& event : events) list.push_back(event.ToJson());
  return DumpJson(Json{{"events", std::move(list)}}) + "\n";
}

template <typename F>
void Describe(F& fields, Described<F, WatchLive::Tile>& tile) {
  fields("stream", tile.stream);
  fields("last", tile.last);
}

template <typename F>
void Describe(F& fields, Described<F, WatchLive>& live) {
  fields("model", live.model);
  fields("deadline_ms", live.deadline_ms);
  fields("elapsed_s", live.elapsed_s);
  fields("finished", live.finished);
  fields("frames", live.frames);
  fields("in_time_percent", live.in_time_percent);
  fields("latency_ms", live.latency_ms);
  fields("stages_ms", live.stages_ms);
  fields("tiles", live.tiles);
}

Json WatchLive::ToJson() const { return FieldsToJson(*this); }

}  // namespace weir::results
