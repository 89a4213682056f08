#include "model/show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "base/count.h"
#include "model/open.h"

namespace weir::model {
namespace {

using results::ModelFacts;

std::vector<results::Tensor> TensorsOf(const std::vector<infer::TensorInfo>& tensors) {
  std::vector<results::Tensor> list;
  for (const auto& tensor : tensors) {
    list.push_back({.name = tensor.name,
                    .datatype = std::string(ToString(tensor.dtype)),
                    .shape = tensor.any_rank ? std::nullopt : std::optional(tensor.shape),
                    .optional = tensor.optional});
  }
  return list;
}

void TakeGraph(const onnx::GraphFacts& graph, ModelFacts& facts) {
  facts.parameters = graph.parameters;
  facts.multiply_adds_per_item = graph.multiply_adds_per_item;
  facts.activations_per_item = graph.activations_per_item;
  facts.inner_modules = graph.inner_modules;
  facts.depth = graph.depth;
  facts.nodes = graph.nodes;
  for (const auto& [domain, version] : graph.opsets) {
    if (domain.empty()) {
      facts.opset = version;
    } else {
      facts.other_opsets[domain] = version;
    }
  }
  facts.ir_version = graph.ir_version;
  facts.producer = graph.producer;
  facts.file_bytes = static_cast<int64_t>(graph.file_bytes);
  facts.external_bytes = static_cast<int64_t>(graph.external_bytes);
}

}  // namespace

Result<ModelFacts> DescribeModel(const std::string& path) { return DescribeModelWith(path, {}); }

Result<ModelFacts> DescribeModelWith(const std::string& path, const OpenOptions& options) {
  const ModelAndFacts opened = TRY(OpenWithFacts(path, options));
  const Model& model = opened.model;
  ModelFacts facts;
  facts.name = model.name;
  facts.version = model.version;
  facts.backend = model.backend;
  facts.inputs = TensorsOf(model.inputs);
  std::ranges::move(TensorsOf(model.optional_inputs), std::back_inserter(facts.inputs));
  facts.outputs = TensorsOf(model.outputs);
  for (const LeftOut& output : model.left_out)
    facts.left_out.push_back({.name = output.name, .datatype = output.datatype});
  if (opened.facts) TakeGraph(*opened.facts, facts);
  facts.batchable = model.not_batchable.empty();
  facts.not_batchable = model.not_batchable;
  facts.fixed_batch = model.fixed_batch;
  facts.max_batch = model.max_batch;
  facts.has_recipe = model.recipe.has_value();
  facts.labels = std::ssize(model.labels);
  return facts;
}

namespace {

std::string Figure(const std::optional<int64_t>& figure, double scale, const char* unit) {
  if (!figure) return "not known";
  return fmt::format("{}{}", Short(static_cast<double>(*figure) * scale), unit);
}

std::string Whole(const std::optional<int64_t>& figure) { return figure ? Count(*figure) : "not known"; }

std::string TensorLines(const std::vector<results::Tensor>& tensors, const char* what) {
  std::string text;
  for (const auto& tensor : tensors) {
    const std::string shape = tensor.shape ? fmt::format("[{}]", fmt::join(*tensor.shape, ","))
                                           : "of a shape that the file does not tell";
    text += fmt::format("  {:<8} {}  {} {}{}\n", what, tensor.name, tensor.datatype, shape,
                        tensor.optional ? ", optional" : "");
  }
  return text;
}

}  // namespace

std::string FactsText(const TextStyle& style, const std::string& path, const results::ModelFacts& facts) {
  std::string text =
      style.Bold(path) + "\n" + TensorLines(facts.inputs, "inputs") + TensorLines(facts.outputs, "outputs");
  for (const results::Tensor& output : facts.left_out) {
    text += fmt::format("  left out {}  of type {}, which cannot be sent\n", output.name, output.datatype);
  }
  text += fmt::format("  parameters      {}\n", Figure(facts.parameters, 1e-6, " million"));
  text +=
      fmt::format("  multiply-adds   {} an item\n", Figure(facts.multiply_adds_per_item, 1e-6, " million"));
  text += fmt::format("  activations     {} an item\n", Figure(facts.activations_per_item, 1e-6, " million"));
  text += fmt::format("  depth           {} weight layers, {} inner modules\n", Whole(facts.depth),
                      Whole(facts.inner_modules));
  text += fmt::format("  batchable       {}\n",
                      facts.not_batchable.empty() ? "yes" : "no: " + facts.not_batchable);
  text += fmt::format("  file            {}\n", Figure(facts.file_bytes, 1e-6, " MB"));
  return text;
}

}  // namespace weir::model
