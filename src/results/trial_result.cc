#include "results/trial_result.h"

#include "results/describe_runs.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics::ServerTimes>& times) {
  fields("queue", times.queue);
  fields("compute_input", times.compute_input);
  fields("compute_infer", times.compute_infer);
  fields("compute_output", times.compute_output);
  fields("request", times.request);
  fields("outside", times.outside);
  fields("receive", times.receive);
  fields("rows_per_batch", times.rows_per_batch);
}

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics::Link>& link) {
  fields("to_server_bytes", link.to_server_bytes);
  fields("from_server_bytes", link.from_server_bytes);
  fields("gbit_per_s", link.gbit_per_s);
  fields("rate_changes", link.rate_changes);
  fields("latest_change_ms", link.latest_change_ms);
}

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics::Watch>& watch) {
  fields("captured", watch.captured);
  fields("answered", watch.answered);
  fields("in_time", watch.in_time);
  fields("dropped", watch.dropped);
  fields("in_time_percent", watch.in_time_percent);
  fields("cpu_ms_per_frame", watch.cpu_ms_per_frame);
}

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics::Phase>& phase) {
  fields("items", phase.items);
  fields("seconds", phase.seconds);
  fields("per_s", phase.per_s);
  fields("limit_cores", phase.limit_cores);
}

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics::Beside>& beside) {
  fields("feed", beside.feed);
  fields("prepare", beside.prepare);
}

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics::Absent::Resources>& absent) {
  fields("gpu_percent", absent.gpu_percent);
  fields("container_memory_bytes", absent.container_memory_bytes);
}

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics::Absent>& absent) {
  fields("split_ms", absent.split_ms);
  fields("stages_ms", absent.stages_ms);
  fields("server_resources", absent.server_resources);
  fields("resources", absent.resources);
  fields("response_ms", absent.response_ms);
}

template <typename F>
void Describe(F& fields, Described<F, TrialMetrics>& metrics) {
  fields("throughput_images_per_s", metrics.throughput_images_per_s);
  fields("wall_s", metrics.wall_s);
  fields("images", metrics.images);
  fields("rejected", metrics.rejected);
  fields("stages_ms", metrics.stages_ms);
  fields("bound_images_per_s", metrics.bounds);
  fields("cpu_ms_per_image", metrics.cpu_ms_per_image);
  fields("accuracy", metrics.accuracy);
  fields("throughput_per_s", metrics.throughput_per_s);
  fields("rows_per_s", metrics.rows_per_s);
  fields("response_ms", metrics.response);
  fields("service_ms", metrics.service);
  fields("first_byte_ms", metrics.first_byte);
  fields("slip_ms", metrics.slip);
  fields.Unless("response_counts", metrics.response_counts);
  fields("split_ms", metrics.split);
  fields("slowest", metrics.slowest);
  fields("server_ms", metrics.server);
  fields("server_mean_batch", metrics.server_mean_batch);
  fields("server_requests", metrics.server_requests);
  fields("answered", metrics.answered);
  fields("failed", metrics.failed);
  fields("unsent", metrics.unsent);
  fields("planned", metrics.planned);
  fields("client_cpu_us_per_request", metrics.client_cpu_us_per_request);
  fields("spin_cpu_s", metrics.spin_cpu_s);
  fields("resources", metrics.resources);
  fields("response_of", metrics.response_of);
  fields.IfAny("machine_cpus", metrics.machine_cpus);
  fields("server_start_s", metrics.server_start_s);
  fields("container_memory_is", metrics.container_memory_is);
  fields("memory_bytes", metrics.memory);
  fields("server_resources", metrics.server_resources);
  fields("link", metrics.link);
  fields("watch", metrics.watch);
  fields("servers", metrics.servers);
  fields("beside", metrics.beside);
  fields("bottleneck", metrics.bottleneck);
  fields("bottleneck_share", metrics.bottleneck_share);
  fields("bottleneck_next", metrics.bottleneck_next);
  fields("bottleneck_next_images_per_s", metrics.bottleneck_next_images_per_s);
  fields("bottleneck_contradiction", metrics.bottleneck_contradiction);
  fields("answers_compared", metrics.answers_compared);
  fields("answers_differ", metrics.answers_differ);
  fields.IfAny("absent", metrics.absent);
}

template <typename F>
void Describe(F& fields, Described<F, TrialResult>& result) {
  fields("factors", result.factors);
  fields.Require(result.factors.is_object(), "key \"factors\" is not an object");
  fields("metrics", result.metrics);
  fields.Require(result.metrics.is_object(), "key \"metrics\" is not an object");
  fields("verdict", result.verdict);
  fields("provenance", result.provenance);
  fields("command", result.command);
  fields.Unless("server_command", result.server_command);
}

Json TrialMetrics::ToJson() const { return FieldsToJson(*this); }

Result<TrialMetrics> TrialMetrics::FromJson(const Json& json) { return FieldsFromJson<TrialMetrics>(json); }

Json TrialResult::ToJson() const { return FieldsToJson(*this); }

Result<TrialResult> TrialResult::FromJson(const Json& json) { return FieldsFromJson<TrialResult>(json); }

}  // namespace weir::results
