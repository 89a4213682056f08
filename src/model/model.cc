#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "dataset/labels.h"
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

// kUnsupported for what is no tensor, or of a type that cannot be sent.
Result<TensorInfo> InfoOf(const onnx::TensorFacts& facts, std::string_view kind) {
  const Result<infer::DType> dtype = infer::ParseDType(facts.datatype);
  if (!dtype) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} \"{}\" is of type {}, which cannot be sent or received", kind, facts.name,
                            facts.datatype));
  }
  return TensorInfo{.name = facts.name,
                    .dtype = *dtype,
                    .shape = facts.shape.value_or(infer::Shape{-1}),
                    .any_rank = !facts.shape};
}

Result<Tensors> TensorsOf(const onnx::GraphFacts& facts) {
  Tensors tensors;
  for (const auto& input : facts.inputs) tensors.inputs.push_back(TRY(InfoOf(input, "input")));
  for (const auto& input : facts.filled_inputs) {
    if (auto info = InfoOf(input, "input")) tensors.filled.push_back(*std::move(info));
  }
  for (const auto& output : facts.outputs) {
    if (auto info = InfoOf(output, "output")) {
      tensors.outputs.push_back(*std::move(info));
    } else {
      tensors.left_out.push_back({output.name, output.datatype});
    }
  }
  if (tensors.outputs.empty() && !facts.outputs.empty()) TRY_STATUS(InfoOf(facts.outputs.front(), "output"));
  return tensors;
}

// Empty where the rows of the tensor are items of a batch.
std::string WhyNotBatchable(const TensorInfo& tensor, std::string_view kind) {
  if (tensor.any_rank) return fmt::format("the file does not tell the shape of {} {}", kind, tensor.name);
  if (tensor.shape.empty()) return fmt::format("{} {} has no batch dimension", kind, tensor.name);
  if (tensor.shape.front() < 0) return "";
  return fmt::format("{} {} has a fixed first dimension of {}", kind, tensor.name, tensor.shape.front());
}

// The facts' reason for a tensor of the file: it knows which dimensions the data decide.
std::optional<std::string> ReasonOfFile(const std::vector<onnx::TensorFacts>& facts,
                                        const std::string& name) {
  const auto found = std::ranges::find(facts, name, &onnx::TensorFacts::name);
  return found == facts.end() ? std::nullopt : std::optional(found->not_batchable);
}

// Judges a tensor that the configuration lists by what it says.
std::string WhyNotBatchable(const Tensors& tensors, const std::optional<onnx::GraphFacts>& facts,
                            const Config& config) {
  if (facts && facts->inputs.empty()) return facts->not_batchable;
  for (const TensorInfo& input : tensors.inputs) {
    std::optional<std::string> why;
    if (facts && config.inputs.empty()) why = ReasonOfFile(facts->inputs, input.name);
    if (!why) why = WhyNotBatchable(input, "input");
    if (!why->empty()) return *why;
  }
  for (const TensorInfo& output : tensors.outputs) {
    std::optional<std::string> why;
    if (facts && config.outputs.empty()) why = ReasonOfFile(facts->outputs, output.name);
    if (!why) why = WhyNotBatchable(output, "output");
    if (!why->empty()) return *why;
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
  if (!facts || !facts->batchable()) model.not_batchable = WhyNotBatchable(tensors, facts, model.config);
  if (!model.not_batchable.empty()) model.fixed_batch = FixedBatch(tensors.inputs);
}

Status CheckFormats(const Config& config, const dataset::Recipe& recipe) {
  for (const ConfigTensor& input : config.inputs) {
    if (input.format && *input.format != recipe.layout) {
      return Fail(ErrorCode::kInvalidArgument,
                  "its layout is not the format that config.pbtxt gives the input");
    }
  }
  return {};
}

// The output that the recipe reads if it has a label file, or the first that has one; empty: none.
std::string ConfiguredLabels(const Config& config, const std::string& output) {
  for (const ConfigTensor& tensor : config.outputs) {
    if (!tensor.label_filename.empty() && (output.empty() || tensor.info.name == output))
      return tensor.info.name;
  }
  return "";
}

Status ReadConfiguredLabels(const Folder& folder, Model& model) {
  size_t total = 0;
  for (const ConfigTensor& tensor : model.config.outputs) {
    if (tensor.label_filename.empty()) continue;
    const std::string path = TRY(PartOf(folder, tensor.label_filename));
    if (path.empty()) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}/{}: no such file; config.pbtxt names it for the labels", folder.path,
                              tensor.label_filename));
    }
    std::vector<std::string> labels = TRY(dataset::ReadLabels(path));
    total += labels.size();
    if (total > dataset::kMostLabels) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: the outputs have more than {} labels together", folder.path,
                              dataset::kMostLabels));
    }
    model.output_labels[tensor.info.name] = std::move(labels);
  }
  return {};
}

// Checks the model's own recipe; a recipe that the user names may have its labels anywhere.
Status CheckLabelsInside(const Folder& folder, const dataset::Recipe& recipe) {
  if (recipe.labels.empty()) return {};
  const fs::path relative = fs::path(recipe.labels).lexically_relative(folder.path);
  const std::string inside = TRY(PartOf(folder, relative.empty() ? recipe.labels : relative.string()));
  if (inside.empty())
    return Fail(ErrorCode::kNotFound, recipe.labels + ": no such file; the recipe names it for its labels");
  return {};
}

Status ReadRecipeOf(const std::string& path, const Tensors& tensors, Model& model) {
  dataset::Recipe recipe = TRY(dataset::ReadRecipe(path));
  if (const Status fits = CheckFits(recipe, tensors); !fits) return Context(path, fits.error());
  model.recipe = std::move(recipe);
  return {};
}

// The shape of `tensor` as clients see it. What is free there and fixed in the model file is fixed.
infer::Shape ClientShape(const TensorInfo& tensor, const ConfigTensor& config) {
  infer::Shape shape = tensor.shape;
  if (!config.reshape) {
    const bool is_number = config.info.shape.size() > shape.size();  // it may have the dims [1]
    if (is_number) shape.push_back(1);
    return shape;
  }
  shape = config.info.shape;
  auto free = std::ranges::find_if(shape, [](int64_t dim) { return dim < 0; });
  for (size_t i = 0; i < config.reshape->size() && free != shape.end(); ++i) {
    if ((*config.reshape)[i] >= 0) continue;
    if (i < tensor.shape.size() && tensor.shape[i] >= 0) *free = tensor.shape[i];
    free = std::find_if(free + 1, shape.end(), [](int64_t dim) { return dim < 0; });
  }
  return shape;
}

// Returns the tensors as clients see them; the configuration may reshape them.
std::vector<TensorInfo> ClientView(std::vector<TensorInfo> tensors, const std::vector<ConfigTensor>& config) {
  for (TensorInfo& tensor : tensors) {
    const auto found =
        std::ranges::find(config, tensor.name, [](const ConfigTensor& t) { return t.info.name; });
    if (found != config.end() && !tensor.any_rank) tensor.shape = ClientShape(tensor, *found);
  }
  return tensors;
}

int ServingMaxBatch(const Config& config, const Tensors& tensors, bool batchable) {
  const bool silent = config.inputs.empty() && config.outputs.empty() && !config.max_batch_size;
  if (!silent) return config.max_batch;
  const auto two_or_more = [](const TensorInfo& tensor) { return tensor.shape.size() >= 2; };
  return batchable && !tensors.inputs.empty() && std::ranges::all_of(tensors.inputs, two_or_more) &&
                 std::ranges::all_of(tensors.outputs, two_or_more)
             ? kDefaultMaxBatch
             : 0;
}

void FillTensors(const Tensors& tensors, const std::optional<onnx::GraphFacts>& facts, Model& model) {
  for (const TensorInfo& input : tensors.inputs)
    (input.optional ? model.optional_inputs : model.inputs).push_back(input);
  model.outputs = tensors.outputs;
  model.left_out = tensors.left_out;
  FillBatch(tensors, facts, model);
  model.client_inputs = ClientView(tensors.inputs, model.config.inputs);
  model.client_outputs = ClientView(tensors.outputs, model.config.outputs);
  model.serving_max_batch = ServingMaxBatch(model.config, tensors, model.not_batchable.empty());
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    const infer::Shape& own = tensors.inputs[i].shape;
    model.reshapes_inputs |= own.empty() || own != model.client_inputs[i].shape;
  }
}

// The model's labels, by the index of its scores.
void FillOutputLabels(Model& model) {
  if (model.labels.empty()) return;
  const std::string scores = ScoresOf(model);
  if (scores.empty() || model.output_labels.contains(scores)) return;
  std::vector<std::string> labels(static_cast<size_t>(model.recipe ? model.recipe->first_class : 0));
  labels.insert(labels.end(), model.labels.begin(), model.labels.end());
  model.output_labels[scores] = std::move(labels);
}

Result<ModelAndFacts> OpenFile(const std::string& path, const OpenOptions& options) {
  ModelAndFacts opened{.facts = TRY(onnx::ReadGraph(path, options.link_roots))};
  Model& model = opened.model;
  const fs::path file(path);
  model.name = (file.extension() == ".onnx" ? file.stem() : file.filename()).string();
  model.path = opened.facts->path;
  const Tensors tensors = TRY_CONTEXT(TensorsOf(*opened.facts), path);
  FillTensors(tensors, opened.facts, model);
  std::string recipe = options.recipe;
  const std::string beside = (file.parent_path() / (model.name + ".recipe.yaml")).string();
  std::error_code ignored;
  if (recipe.empty() && fs::exists(beside, ignored)) recipe = beside;
  if (!recipe.empty()) TRY_STATUS(ReadRecipeOf(recipe, tensors, model));
  if (model.recipe && !model.recipe->labels.empty())
    model.labels = TRY(dataset::ReadLabels(model.recipe->labels));
  FillOutputLabels(model);
  return opened;
}

Result<Tensors> ConfiguredTensors(const Config& config) {
  Tensors tensors;
  const auto as_the_model_has_it = [](const ConfigTensor& tensor) {
    return TensorInfo{.name = tensor.info.name, .dtype = tensor.info.dtype, .shape = tensor.model_shape()};
  };
  std::ranges::transform(config.inputs, std::back_inserter(tensors.inputs), as_the_model_has_it);
  std::ranges::transform(config.outputs, std::back_inserter(tensors.outputs), as_the_model_has_it);
  if (!tensors.inputs.empty() && !tensors.outputs.empty()) return tensors;
  return Fail(ErrorCode::kInvalidArgument,
              "config.pbtxt: an emulated model without a file needs its inputs and outputs declared here");
}

// The label file by its place in the folder, as config.pbtxt would name it. Empty where it lies elsewhere,
// and where a line is not the label of the score of the same index.
std::string LabelFile(const Folder& folder, const std::string& labels, int first_class) {
  std::error_code error;
  const fs::path inside = fs::canonical(labels, error).lexically_relative(folder.path);
  const bool is_inside = !error && !inside.empty() && *inside.begin() != "..";
  return is_inside && first_class == 0 ? inside.string() : "";
}

Status FillRecipeAndLabels(const Folder& folder, const OpenOptions& options, const Tensors& tensors,
                           Model& model) {
  const std::string own = options.recipe.empty() ? TRY(PartOf(folder, "recipe.yaml")) : "";
  const std::string recipe = options.recipe.empty() ? own : options.recipe;
  if (!recipe.empty()) TRY_STATUS(ReadRecipeOf(recipe, tensors, model));
  if (!own.empty()) TRY_STATUS(CheckLabelsInside(folder, *model.recipe));
  if (model.recipe && folder.config) {
    if (const Status fits = CheckFormats(*folder.config, *model.recipe); !fits)
      return Context(recipe, fits.error());
  }

  TRY_STATUS(ReadConfiguredLabels(folder, model));
  std::string labels = model.recipe ? model.recipe->labels : "";
  if (labels.empty() && folder.config) {
    const std::string output = ConfiguredLabels(*folder.config, model.recipe ? model.recipe->output : "");
    if (!output.empty()) model.labels = model.output_labels.at(output);
  }
  if (labels.empty() && model.labels.empty()) labels = TRY(PartOf(folder, "labels.txt"));
  if (!labels.empty()) {
    model.labels = TRY(dataset::ReadLabels(labels));
    model.label_file = LabelFile(folder, labels, model.recipe ? model.recipe->first_class : 0);
  }
  FillOutputLabels(model);
  return {};
}

Result<ModelAndFacts> OpenModelFolder(const std::string& path, const OpenOptions& options) {
  const Folder folder = TRY(OpenFolder(
      path, {.version = options.version, .config = options.config, .link_roots = options.link_roots}));
  ModelAndFacts opened;
  Model& model = opened.model;
  model.name = folder.name;
  model.folder = folder.path;
  model.link_roots = folder.roots;
  model.version = folder.version;
  Tensors tensors;
  if (!folder.model.empty()) {
    std::vector<std::string> roots = folder.roots;
    roots.push_back(folder.path);
    opened.facts = TRY(onnx::ReadGraph(folder.model, roots));
    model.path = opened.facts->path;
    tensors = TRY_CONTEXT(TensorsOf(*opened.facts), folder.model);
    if (folder.config) tensors = TRY_CONTEXT(Narrow(tensors, *folder.config), folder.path + "/config.pbtxt");
  } else {
    tensors = TRY_CONTEXT(ConfiguredTensors(*folder.config), folder.path);
  }
  if (folder.config) {
    model.config = *folder.config;
    model.backend = folder.config->backend;
    model.parameters = folder.config->parameters;
    if (folder.config->max_batch > 0) model.max_batch = folder.config->max_batch;
  }
  FillTensors(tensors, opened.facts, model);
  TRY_STATUS(FillRecipeAndLabels(folder, options, tensors, model));
  return opened;
}

}  // namespace

const TensorInfo* FindInput(const Model& model, const std::string& name) {
  for (const auto* inputs : {&model.inputs, &model.optional_inputs}) {
    const auto found = std::ranges::find(*inputs, name, &TensorInfo::name);
    if (found != inputs->end()) return &*found;
  }
  return nullptr;
}

Result<std::vector<std::string>> LinkRoots(const std::vector<std::string>& folders) {
  std::vector<std::string> roots;
  for (const std::string& folder : folders) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error || !fs::is_directory(real, error))
      return Fail(ErrorCode::kNotFound, folder + ": no such folder; links may lead below a folder");
    roots.push_back(real.string());
  }
  return roots;
}

std::string ScoresOf(const Model& model) {
  if (model.recipe && !model.recipe->output.empty()) return model.recipe->output;
  return model.outputs.size() == 1 ? model.outputs.front().name : "";
}

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

Result<std::vector<std::string>> ServedVersions(const std::string& path, const OpenOptions& options) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return FolderVersions(path, {.config = options.config, .link_roots = options.link_roots});
  return std::vector<std::string>{"1"};
}

Result<Bytes> ReadWarmUpFile(const Model& model, const std::string& name, uint64_t max_bytes) {
  if (model.folder.empty()) return Fail(ErrorCode::kNotFound, "a bare model file has no warmup folder");
  const std::string path = TRY(PartOf({.path = model.folder, .roots = model.link_roots}, "warmup/" + name));
  if (path.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}/warmup/{}: no such file; config.pbtxt names it", model.folder, name));
  }
  return ReadFile(path, max_bytes);
}

}  // namespace weir::model
