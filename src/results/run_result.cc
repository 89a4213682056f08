#include "results/run_result.h"

#include "results/describe_runs.h"
#include "results/schema_version.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, RunResult::ServerTimes>& times) {
  fields("queue", times.queue);
  fields("compute_input", times.compute_input);
  fields("compute_infer", times.compute_infer);
  fields("compute_output", times.compute_output);
}

template <typename F>
void Describe(F& fields, Described<F, RunResult::Engine>& engine) {
  fields("server", engine.server);
  fields("payload", engine.payload);
  fields("platform", engine.platform);
  fields("engine", engine.engine);
  fields("engine_version", engine.engine_version);
  fields("precision", engine.precision);
  fields("threads", engine.threads);
  fields("streams", engine.streams);
  fields("not_batchable", engine.not_batchable);
  fields("server_ms", engine.server_ms);
  fields("server_requests", engine.server_requests);
  fields("server_mean_batch", engine.server_mean_batch);
}

template <typename F>
void Describe(F& fields, Described<F, ServerCosts>& costs) {
  fields("own_s", costs.own_s);
  fields("queue_s", costs.queue_s);
  fields("alone_s", costs.alone_s);
}

template <typename F>
void Describe(F& fields, Described<F, Costs>& costs) {
  fields("images", costs.images);
  fields("wall_s", costs.wall_s);
  fields("cores", costs.cores);
  fields("overlapped", costs.overlapped);
  fields("loaders", costs.loaders);
  fields("load_cpu_s", costs.load_cpu_s);
  fields("load_blocked_s", costs.load_blocked_s);
  fields("engine_threads", costs.engine_threads);
  fields("engine_streams", costs.engine_streams);
  fields("remote", costs.remote);
  fields("engine_cpu_s", costs.engine_cpu_s);
  fields("engine_busy_s", costs.engine_busy_s);
  fields("in_flight", costs.in_flight);
  fields("round_trip_s", costs.round_trip_s);
  fields("held_back_s", costs.held_back_s);
  fields("print_s", costs.print_s);
  fields("other_cpu_s", costs.other_cpu_s);
  fields("foreign_cpu_s", costs.foreign_cpu_s);
  fields("load_s", costs.load_s);
  fields("send_s", costs.send_s);
  fields("infer_s", costs.infer_s);
  fields("server", costs.server);
}

template <typename F>
void Describe(F& fields, Described<F, RunResult>& result) {
  fields("model", result.model);
  Describe(fields, result.engine);  // at the same level
  fields("batch", result.batch);
  fields("mode", result.mode);
  fields("in_flight", result.in_flight);
  fields("decode_threads", result.decode_threads);
  fields("no_files", result.no_files);
  fields("repeat_data", result.repeat_data);
  fields("images", result.images);
  fields("rejected", result.rejected);
  fields("rejected_by_reason", result.rejected_by_reason);
  fields("skipped", result.skipped);
  fields("interrupted", result.interrupted);
  fields("throughput_images_per_s", result.throughput_images_per_s);
  fields("wall_s", result.wall_s);
  fields.Unless("load_before_s", result.load_before_s);
  fields("stages_ms", result.stages_ms);
  fields("resources", result.resources);
  fields("server_resources", result.server_resources);
  fields("servers", result.servers);
  fields("bound_images_per_s", result.bounds);
  fields("cpu_ms_per_image", result.cpu_ms_per_image);
  fields("bottleneck", result.bottleneck);
  fields("costs", result.costs);
  fields("accuracy", result.accuracy);
  fields("accuracy_left_out", result.accuracy_left_out);
  fields("warnings", result.warnings);
  fields("provenance", result.provenance);
  fields("command", result.command);
}

Json RunResult::ToJson() const {
  Json json{{kSchemaVersionKey, kSchemaVersion}};
  json.update(FieldsToJson(*this));
  return json;
}

Result<RunResult> RunResult::FromJson(const Json& json) {
  TRY_STATUS(CheckSchemaVersion(json, "the result of weir run"));
  return FieldsFromJson<RunResult>(json);
}

Json ToJson(const RunResult::Engine& engine) { return FieldsToJson(engine); }

}  // namespace weir::results
