#include "results/feed_result.h"

#include "results/describe.h"
#include "results/schema_version.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, FeedResult::Stages>& stages) {
  fields("read", stages.read);
  fields("decode", stages.decode);
  fields("augment", stages.augment);
  fields("wait", stages.wait);
  fields("idle", stages.idle);
}

template <typename F>
void Describe(F& fields, Described<F, FeedResult::Trainer>& trainer) {
  fields("step_ms", trainer.step_ms);
  fields("utilisation_percent", trainer.utilisation_percent);
}

template <typename F>
void Describe(F& fields, Described<F, FeedResult::Mixing>& mixing) {
  fields("serial_correlation", mixing.serial_correlation);
  fields("class_share", mixing.class_share);
}

template <typename F>
void Describe(F& fields, Described<F, FeedResult::Bad>& bad) {
  fields("name", bad.name);
  fields("reason", bad.reason);
  fields("detail", bad.detail);
}

template <typename F>
void Describe(F& fields, Described<F, FeedResult::Host>& host) {
  fields("name", host.name);
  fields.FromZero("rank", host.rank);
  fields.Finite("clock_offset_us", host.clock_offset_us);
  fields.FromZero("clock_error_us", host.clock_error_us);
  fields("lost", host.lost);
  fields("verdict", host.verdict);
  fields.FromZero("samples", host.samples);
  fields.FromZero("wall_s", host.wall_s);
  fields.FromZero("samples_per_s", host.samples_per_s);
  fields.FromZero("cpu_us_per_sample", host.cpu_us_per_sample);
  fields.FromZero("first_batch_ms", host.first_batch_ms);
  fields.FromZero("meet_ms", host.meet_ms);
  fields.FromZero("bytes_read", host.bytes_read);
  fields("stages_ms", host.stages_ms);
  fields.Unless("resources", host.resources);
}

template <typename F>
void Describe(F& fields, Described<F, FeedResult::Reason>& reason) {
  fields("reason", reason.reason);
  fields("evidence", reason.evidence);
}

template <typename F>
void Describe(F& fields, Described<F, FeedResult>& result) {
  fields("set", result.set);
  fields("hash", result.hash);
  fields("images", result.images);
  fields("classes", result.classes);
  fields("batch", result.batch);
  fields("rank", result.rank);
  fields("world", result.world);
  fields("threads", result.threads);
  fields("prefetch", result.prefetch);
  fields("seed", result.seed);
  fields("sampler", result.sampler);
  fields("ends", result.ends);
  fields("crop", result.crop);
  fields("type", result.type);
  fields("bad_policy", result.bad_policy);
  fields("samples", result.samples);
  fields("batches", result.batches);
  fields("wall_s", result.wall_s);
  fields("samples_per_s", result.samples_per_s);
  fields("cpu_us_per_sample", result.cpu_us_per_sample);
  fields("first_batch_ms", result.first_batch_ms);
  fields("bytes_read", result.bytes_read);
  fields("stages_ms", result.stages_ms);
  fields("meet_ms", result.meet_ms);
  fields("trainer", result.trainer);
  fields("bottleneck", result.bottleneck);
  fields("verdict", result.verdict);
  fields("reasons", result.reasons);
  fields("rejected", result.rejected);
  fields.Unless("rejected_examples", result.rejected_examples);
  fields("mixing", result.mixing);
  fields.Unless("epoch_hashes", result.epoch_hashes);
  fields("state", result.state);
  fields.Unless("interrupted", result.interrupted);
  fields.Unless("hosts", result.hosts);
  fields.Unless("resources", result.resources);
  fields.Unless("provenance", result.provenance);
  fields.Unless("command", result.command);
}

Json FeedResult::ToJson() const {
  Json json{{kSchemaVersionKey, kSchemaVersion}};
  json.update(FieldsToJson(*this));
  return json;
}

Result<FeedResult> FeedResult::FromJson(const Json& json) {
  TRY_STATUS(CheckSchemaVersion(json, "the result of weir feed"));
  return FieldsFromJson<FeedResult>(json);
}

}  // namespace weir::results
