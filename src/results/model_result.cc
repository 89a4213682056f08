#include "results/model_result.h"

#include "results/describe.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, ModelMakeResult>& result) {
  fields("folder", result.folder);
  fields("model_bytes", result.model_bytes);
  fields("classes", result.classes);
  fields("pictures", result.pictures);
  fields("expected_accuracy", result.expected_accuracy);
  fields("wall_s", result.wall_s);
  fields("seed", result.seed);
  fields("command", result.command);
}

template <typename F>
void Describe(F& fields, Described<F, ModelFacts>& facts) {
  fields("name", facts.name);
  fields.Unless("version", facts.version);
  fields.Unless("backend", facts.backend);
  fields("inputs", facts.inputs);
  fields("outputs", facts.outputs);
  fields.Unless("left_out", facts.left_out);
  fields("parameters", facts.parameters);
  fields("multiply_adds_per_item", facts.multiply_adds_per_item);
  fields("activations_per_item", facts.activations_per_item);
  fields("inner_modules", facts.inner_modules);
  fields("depth", facts.depth);
  fields("nodes", facts.nodes);
  fields("opset", facts.opset);
  fields.Unless("other_opsets", facts.other_opsets);
  fields("ir_version", facts.ir_version);
  fields.Unless("producer", facts.producer);
  fields("file_bytes", facts.file_bytes);
  fields.Unless("external_bytes", facts.external_bytes);
  fields("batchable", facts.batchable);
  fields.Unless("not_batchable", facts.not_batchable);
  fields("fixed_batch", facts.fixed_batch);
  fields("max_batch", facts.max_batch);
  fields("has_recipe", facts.has_recipe);
  fields.Unless("labels", facts.labels);
}

Json ModelMakeResult::ToJson() const { return FieldsToJson(*this); }

Result<ModelMakeResult> ModelMakeResult::FromJson(const Json& json) {
  return FieldsFromJson<ModelMakeResult>(json);
}

Json ModelFacts::ToJson() const { return FieldsToJson(*this); }

Result<ModelFacts> ModelFacts::FromJson(const Json& json) { return FieldsFromJson<ModelFacts>(json); }

}  // namespace weir::results
