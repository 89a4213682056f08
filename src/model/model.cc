#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <utility>

#include "model/fit.h"
#include "model/folder.h"
#include "model/open.h"

namespace weir::model {
namespace {

namespace fs = std::filesystem;
using infer::TensorInfo;

// Whole URLs of served models; a file may well have a colon in its name.
bool IsUrl(const std::string& path) {
  constexpr std::array<std::string_view, 4> kSchemes = {"http://", "https://", "grpc://", "grpcs://"};
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return path.starts_with(scheme); });
}

Result<TensorInfo> InfoOf(const onnx::TensorFacts& facts, std::string_view kind) {
  const Result<infer::DType> dtype = infer::ParseDType(facts.datatype);
  if (!dtype) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} \"{}\" is of type {}, which cannot be sent or received", kind, facts.name,
                            facts.datatype));
  }
  if (!facts.shape && kind == "input") {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("the file does not tell the shape of input \"{}\"", facts.name));
  }
  return TensorInfo{.name = facts.name, .dtype = *dtype, .shape = facts.shape.value_or(infer::Shape{-1})};
}

Result<Tensors> TensorsOf(const onnx::GraphFacts& facts) {
  Tensors tensors;
  for (const auto& input : facts.inputs) tensors.inputs.push_back(TRY(InfoOf(input, "input")));
  for (const auto& output : facts.outputs) tensors.outputs.push_back(TRY(InfoOf(output, "output")));
  return tensors;
}

std::string WhyNotBatchable(const Tensors& tensors) {
  for (const auto& [list, kind] :
       {std::pair(&tensors.inputs, "input"), std::pair(&tensors.outputs, "output")}) {
    for (const TensorInfo& tensor : *list) {
      if (tensor.shape.empty()) return fmt::format("{} {} has no batch dimension", kind, tensor.name);
      if (tensor.shape.front() >= 0) {
        return fmt::format("{} {} has a fixed first dimension of {}", kind, tensor.name,
                           tensor.shape.front());
      }
    }
  }
  return "";
}

// The batch of a model that takes no other: what its inputs say, or 1 where they leave it open.
int FixedBatch(const std::vector<TensorInfo>& inputs) {
  int64_t batch = 1;
  for (const TensorInfo& input : inputs) {
    if (!input.shape.empty() && input.shape.front() > 0) batch = input.shape.front();
  }
  return static_cast<int>(std::min<int64_t>(batch, INT_MAX));
}

void FillBatch(const Tensors& tensors, const std::optional<onnx::GraphFacts>& facts, Model& model) {
  model.not_batchable = facts && !facts->batchable() ? facts->not_batchable : WhyNotBatchable(tensors);
  if (!model.not_batchable.empty()) model.fixed_batch = FixedBatch(tensors.inputs);
}

Status CheckFormats(const Config& config, const data::Recipe& recipe) {
  for (const ConfigTensor& input : config.inputs) {
    if (input.format && *input.format != recipe.layout) {
      return Fail(ErrorCode::kInvalidArgument,
                  "its layout is not the format that config.pbtxt gives the input");
    }
  }
  return {};
}

// The label file of the output that the recipe reads, or of the first that has one.
std::string ConfiguredLabels(const Config& config, const std::string& output) {
  for (const ConfigTensor& tensor : config.outputs) {
    if (!tensor.label_filename.empty() && (output.empty() || tensor.info.name == output))
      return tensor.label_filename;
  }
  return "";
}

// Of the model's own recipe; the one that the user names may have its labels anywhere.
Status CheckLabelsInside(const Folder& folder, const data::Recipe& recipe) {
  if (recipe.labels.empty()) return {};
  const fs::path relative = fs::path(recipe.labels).lexically_relative(folder.path);
  const std::string inside = TRY(PartOf(folder, relative.empty() ? recipe.labels : relative.string()));
  if (inside.empty())
    return Fail(ErrorCode::kNotFound, recipe.labels + ": no such file; the recipe names it for its labels");
  return {};
}

Result<std::optional<data::Recipe>> ReadRecipeOf(const std::string& path, const Tensors& tensors) {
  data::Recipe recipe = TRY(data::ReadRecipe(path));
  if (const Status fits = CheckFits(recipe, tensors); !fits) return Context(path, fits.error());
  return recipe;
}

Result<ModelAndFacts> OpenFile(const std::string& path, const OpenOptions& options) {
  ModelAndFacts opened{.facts = TRY(onnx::ReadGraph(path))};
  Model& model = opened.model;
  const fs::path file(path);
  model.name = (file.extension() == ".onnx" ? file.stem() : file.filename()).string();
  model.path = opened.facts->path;
  const Tensors tensors = TRY_CONTEXT(TensorsOf(*opened.facts), path);
  model.inputs = tensors.inputs;
  model.outputs = tensors.outputs;
  FillBatch(tensors, opened.facts, model);

  std::string recipe = options.recipe;
  const std::string beside = (file.parent_path() / (model.name + ".recipe.yaml")).string();
  std::error_code ignored;
  if (recipe.empty() && fs::exists(beside, ignored)) recipe = beside;
  if (!recipe.empty()) model.recipe = TRY(ReadRecipeOf(recipe, tensors));
  if (model.recipe && !model.recipe->labels.empty())
    model.labels = TRY(data::ReadLabels(model.recipe->labels));
  return opened;
}

Result<Tensors> ConfiguredTensors(const Config& config) {
  Tensors tensors;
  for (const ConfigTensor& input : config.inputs) tensors.inputs.push_back(input.info);
  for (const ConfigTensor& output : config.outputs) tensors.outputs.push_back(output.info);
  if (!tensors.inputs.empty() && !tensors.outputs.empty()) return tensors;
  return Fail(ErrorCode::kInvalidArgument,
              "config.pbtxt: an emulated model without a file needs its inputs and outputs declared here");
}

Status FillRecipeAndLabels(const Folder& folder, const OpenOptions& options, const Tensors& tensors,
                           Model& model) {
  const std::string own = options.recipe.empty() ? TRY(PartOf(folder, "recipe.yaml")) : "";
  const std::string recipe = options.recipe.empty() ? own : options.recipe;
  if (!recipe.empty()) model.recipe = TRY(ReadRecipeOf(recipe, tensors));
  if (!own.empty()) TRY_STATUS(CheckLabelsInside(folder, *model.recipe));
  if (model.recipe && folder.config) {
    if (const Status fits = CheckFormats(*folder.config, *model.recipe); !fits)
      return Context(recipe, fits.error());
  }

  std::string labels = model.recipe ? model.recipe->labels : "";
  if (labels.empty() && folder.config) {
    const std::string configured = ConfiguredLabels(*folder.config, model.recipe ? model.recipe->output : "");
    if (!configured.empty()) {
      labels = TRY(PartOf(folder, configured));
      if (labels.empty()) {
        return Fail(ErrorCode::kNotFound,
                    fmt::format("{}/{}: no such file; config.pbtxt names it for the labels", folder.path,
                                configured));
      }
    }
  }
  if (labels.empty()) labels = TRY(PartOf(folder, "labels.txt"));
  if (!labels.empty()) model.labels = TRY(data::ReadLabels(labels));
  return {};
}

Result<ModelAndFacts> OpenModelFolder(const std::string& path, const OpenOptions& options) {
  const Folder folder = TRY(OpenFolder(path));
  ModelAndFacts opened;
  Model& model = opened.model;
  model.name = folder.name;
  model.version = folder.version;
  model.path = folder.model;
  Tensors tensors;
  if (!folder.model.empty()) {
    opened.facts = TRY(onnx::ReadGraph(folder.model));
    tensors = TRY_CONTEXT(TensorsOf(*opened.facts), folder.model);
    if (folder.config) tensors = TRY_CONTEXT(Narrow(tensors, *folder.config), path + "/config.pbtxt");
  } else {
    tensors = TRY_CONTEXT(ConfiguredTensors(*folder.config), path);
  }
  if (folder.config) {
    model.backend = folder.config->backend;
    model.parameters = folder.config->parameters;
    if (folder.config->max_batch > 0) model.max_batch = folder.config->max_batch;
  }
  model.inputs = tensors.inputs;
  model.outputs = tensors.outputs;
  FillBatch(tensors, opened.facts, model);
  TRY_STATUS(FillRecipeAndLabels(folder, options, tensors, model));
  return opened;
}

}  // namespace

Result<ModelAndFacts> OpenWithFacts(const std::string& path, const OpenOptions& options) {
  if (IsUrl(path)) {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{}: served models are not supported yet; name an .onnx file or a model folder", path));
  }
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? OpenModelFolder(path, options) : OpenFile(path, options);
}

Result<Model> OpenModel(const std::string& path, const OpenOptions& options) {
  ModelAndFacts opened = TRY(OpenWithFacts(path, options));
  return std::move(opened.model);
}

}  // namespace weir::model
