#include "model/show.h"

#include <optional>
#include <vector>

#include "model/open.h"

namespace weir::model {
namespace {

Json TensorsJson(const std::vector<infer::TensorInfo>& tensors) {
  Json list = Json::array();
  for (const auto& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"datatype", ToString(tensor.dtype)}, {"shape", tensor.shape}});
  }
  return list;
}

void PutFacts(const onnx::GraphFacts& facts, Json& json) {
  PutIfAny(json, "parameters", facts.parameters);
  PutIfAny(json, "multiply_adds_per_item", facts.multiply_adds_per_item);
  PutIfAny(json, "activations_per_item", facts.activations_per_item);
  PutIfAny(json, "inner_modules", facts.inner_modules);
  PutIfAny(json, "depth", facts.depth);
  json["nodes"] = facts.nodes;
  for (const auto& [domain, version] : facts.opsets) {
    if (domain.empty()) {
      json["opset"] = version;
    } else {
      json["other_opsets"][domain] = version;
    }
  }
  json["ir_version"] = facts.ir_version;
  if (!facts.producer.empty()) json["producer"] = facts.producer;
  json["file_bytes"] = facts.file_bytes;
  if (facts.external_bytes > 0) json["external_bytes"] = facts.external_bytes;
}

}  // namespace

Result<Json> DescribeModel(const std::string& path) {
  const ModelAndFacts opened = TRY(OpenWithFacts(path, {}));
  const Model& model = opened.model;
  Json json;
  json["name"] = model.name;
  if (!model.version.empty()) json["version"] = model.version;
  if (!model.backend.empty()) json["backend"] = model.backend;
  json["inputs"] = TensorsJson(model.inputs);
  json["outputs"] = TensorsJson(model.outputs);
  if (opened.facts) PutFacts(*opened.facts, json);
  json["batchable"] = model.not_batchable.empty();
  if (!model.not_batchable.empty()) json["not_batchable"] = model.not_batchable;
  PutIfAny(json, "fixed_batch", model.fixed_batch);
  PutIfAny(json, "max_batch", model.max_batch);
  json["has_recipe"] = model.recipe.has_value();
  if (!model.labels.empty()) json["labels"] = model.labels.size();
  return json;
}

}  // namespace weir::model
