#include "results/load_result.h"

#include <algorithm>
#include <cmath>

#include "results/describe_runs.h"
#include "results/schema_version.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Verdicts>& verdicts) {
  fields("throughput", verdicts.throughput);
  fields("latency", verdicts.latency);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Reason>& reason) {
  fields("reason", reason.reason);
  fields("about", reason.about);
  fields("evidence", reason.evidence);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Generator>& generator) {
  fields.FromZero("sent", generator.sent);
  fields.FromZero("late", generator.late);
  fields.FromZero("sent_per_s", generator.sent_per_s);
  fields.FromZero("empty_share", generator.empty_share);
  fields.FromZero("busiest_thread", generator.busiest_thread);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Run>& run) {
  fields.FromZero("throughput_per_s", run.throughput_per_s);
  fields.FromZero("measured_s", run.measured_s);
  fields.FromZero("answered", run.answered);
  fields.FromZero("planned", run.planned);
  fields.FromZero("warm_up_s", run.warm_up_s);
  fields.FromZero("warm_up_requests", run.warm_up_requests);
  fields.IfAny("by_count", run.by_count);
  fields("generator", run.generator);
  fields("response_ms", run.response);
  fields("client_send_ms", run.client_send);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::ServerTimes>& times) {
  fields.FromZero("queue", times.queue);
  fields.FromZero("compute_input", times.compute_input);
  fields.FromZero("compute_infer", times.compute_infer);
  fields.FromZero("compute_output", times.compute_output);
  fields.FromZero("request", times.request);
  fields.Finite("outside", times.outside);
  fields.FromZero("receive", times.receive);
  fields.FromZero("rows_per_batch", times.rows_per_batch);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Mlperf>& mlperf) {
  fields("metric", mlperf.metric);
  fields("valid", mlperf.valid);
  fields("shortfalls", mlperf.shortfalls);
  fields("value", mlperf.value);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Part>& part) {
  fields.FromZero("from_s", part.from_s);
  fields.FromZero("to_s", part.to_s);
  fields.FromZero("planned", part.planned);
  fields.FromZero("answered", part.answered);
  fields.FromZero("failed", part.failed);
  fields.FromZero("planned_per_s", part.planned_per_s);
  fields("response_ms", part.response);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Host>& host) {
  fields("name", host.name);
  fields.FromZero("rank", host.rank);
  fields.Finite("clock_offset_us", host.clock_offset_us);
  fields.FromZero("clock_error_us", host.clock_error_us);
  fields("lost", host.lost);
  fields("verdict", host.verdict);
  fields.FromZero("throughput_per_s", host.throughput_per_s);
  fields.FromZero("planned", host.planned);
  fields.FromZero("answered", host.answered);
  fields.FromZero("failed", host.failed);
  fields("response_ms", host.response);
  fields.FromZero("client_cpu_us_per_request", host.client_cpu_us_per_request);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Level>& level) {
  fields("load_model", level.load_model);
  fields.Require(level.load_model == LoadResult::kClosed || level.load_model == LoadResult::kOpen,
                 "key \"load_model\" is not \"closed\" or \"open\"");
  fields.FromZero("concurrency", level.concurrency);
  fields.Require(level.load_model == LoadResult::kOpen || level.concurrency,
                 "key \"concurrency\" is missing, and the loop is closed");
  fields("mode", level.mode);
  fields.FromZero("request_rate", level.request_rate);
  fields("distribution", level.distribution);
  fields("verdict", level.verdict);
  fields("reasons", level.reasons);
  fields.FromZero("throughput_per_s", level.throughput_per_s);
  fields.FromZero("rows_per_s", level.rows_per_s);
  fields.FromZero("repeats", level.repeats);
  fields.FromZero("throughput_standard_error", level.throughput_standard_error);
  fields.FromZero("measured_s", level.measured_s);
  fields.FromZero("elapsed_s", level.elapsed_s);
  fields.FromZero("planned", level.planned);
  fields.FromZero("answered", level.answered);
  fields.FromZero("failed", level.failed);
  fields.FromZero("unsent", level.unsent);
  fields("response_ms", level.response);
  fields.Unless("response_counts", level.response_counts);
  fields("service_ms", level.service);
  fields("first_byte_ms", level.first_byte);
  fields("client_send_ms", level.client_send);
  fields("slip_ms", level.slip);
  fields("errors", level.errors);
  fields.Require(std::ranges::all_of(level.errors, [](const auto& error) { return error.second >= 0; }),
                 "key \"errors\" has a count below 0");
  fields.FromZero("client_cpu_us_per_request", level.client_cpu_us_per_request);
  fields.FromZero("spin_cpu_s", level.spin_cpu_s);
  fields("server_requests", level.server_requests);
  fields("servers", level.servers);
  fields("split_left_out", level.split_left_out);
  fields("server_ms", level.server);
  fields("split_ms", level.split);
  fields("slowest", level.slowest);
  fields("below_threshold", level.below_threshold);
  fields("mlperf", level.mlperf);
  fields("resources", level.resources);
  fields("server_resources", level.server_resources);
  fields("samples_lost", level.samples_lost);
  fields.Unless("trace", level.trace);
  fields("runs", level.runs);
  fields.Unless("hosts", level.hosts);
  fields.Unless("error_messages", level.error_messages);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Claim>& claim) {
  fields.FromZero("percentile", claim.percentile);
  fields.FromZero("latency_threshold_ms", claim.latency_threshold_ms);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Peak>& peak) {
  fields("confirmed", peak.confirmed);
  fields.FromZero("runs", peak.runs);
  fields.Unless("spoiled", peak.spoiled);
  fields.FromZero("request_rate", peak.request_rate);
  fields.FromZero("failed_at", peak.failed_at);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Ceiling>& ceiling) {
  fields.FromZero("ceiling_per_s", ceiling.ceiling_per_s);
  fields.FromZero("floor_ms", ceiling.floor_ms);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult>& result) {
  fields("model", result.model);
  fields("protocol", result.protocol);
  fields.FromZero("batch", result.batch);
  fields("claim", result.claim);
  fields("levels", result.levels);
  fields("peak", result.peak);
  fields("generator", result.generator);
  fields("interrupted", result.interrupted);
  fields.IfAny("provenance", result.provenance);
}

double LoadResult::BucketBeginMs(int64_t bucket) {
  return 1e-3 * std::exp2(static_cast<double>(bucket) / kBucketsPerDoubling);
}

int64_t LoadResult::BucketOf(double ms) {
  if (!(ms > 1e-3)) return 0;
  return static_cast<int64_t>(kBucketsPerDoubling * std::log2(1e3 * ms));
}

Json LoadResult::Interval::ToValue() const { return Json::array({low, high}); }

Result<LoadResult::Interval> LoadResult::Interval::FromValue(const Json& json) {
  const auto is_end = [](const Json& end) { return end.is_number() && std::isfinite(end.get<double>()); };
  if (!json.is_array() || json.size() != 2 || !std::ranges::all_of(json, is_end))
    return Fail(ErrorCode::kCorrupt, "is not a list of two numbers");
  return Interval{json[0].get<double>(), json[1].get<double>()};
}

std::optional<LoadResult::Interval> LoadResult::Times::IntervalOf(const std::string& name) const {
  const auto found = intervals_95.find(name);
  return found == intervals_95.end() ? std::nullopt : std::optional(found->second);
}

Json LoadResult::ToJson() const {
  Json json{{kSchemaVersionKey, kSchemaVersion}};
  json.update(FieldsToJson(*this));
  return json;
}

Result<LoadResult> LoadResult::FromJson(const Json& json) {
  TRY_STATUS(CheckSchemaVersion(json, "the result of weir load"));
  return FieldsFromJson<LoadResult>(json);
}

}  // namespace weir::results
