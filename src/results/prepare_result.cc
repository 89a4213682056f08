#include "results/prepare_result.h"

#include "results/describe.h"
#include "results/schema_version.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, PrepareResult::Labels>& labels) {
  fields("labelled", labels.labelled);
  fields("unlabelled", labels.unlabelled);
  fields("unlabelled_examples", labels.unlabelled_examples);
  fields("unused", labels.unused);
  fields("unused_examples", labels.unused_examples);
}

template <typename F>
void Describe(F& fields, Described<F, PrepareResult::Stages>& stages) {
  fields("read", stages.read);
  fields("network", stages.network);
  fields("check", stages.check);
  fields("decode", stages.decode);
  fields("resize", stages.resize);
  fields("encode", stages.encode);
  fields("write", stages.write);
}

template <typename F>
void Describe(F& fields, Described<F, PrepareResult>& result) {
  fields("folder", result.folder);
  fields("format", result.format);
  fields("images", result.images);
  fields("rejected", result.rejected);
  fields("skipped", result.skipped);
  fields("images_per_s", result.images_per_s);
  fields("wall_s", result.wall_s);
  fields("bytes_in", result.bytes_in);
  fields("bytes_out", result.bytes_out);
  fields("was_finished", result.was_finished);
  fields("begun_at", result.begun_at);
  fields("made_again", result.made_again);
  fields.Unless("splits", result.splits);
  fields("labels", result.labels);
  fields("workers", result.workers);
  fields("stages_s", result.stages_s);
  fields("bottleneck", result.bottleneck);
  fields("seed", result.seed);
  fields.Unless("provenance", result.provenance);
  fields.Unless("command", result.command);
}

Json PrepareResult::ToJson() const {
  Json json{{kSchemaVersionKey, kSchemaVersion}};
  json.update(FieldsToJson(*this));
  return json;
}

Result<PrepareResult> PrepareResult::FromJson(const Json& json) {
  TRY_STATUS(CheckSchemaVersion(json, "the result of weir prepare"));
  return FieldsFromJson<PrepareResult>(json);
}

}  // namespace weir::results
