#include "model/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace weir::model {
namespace {

using infer::TensorInfo;
using infer::ToString;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string Names(const std::vector<TensorInfo>& tensors) {
  std::string names;
  for (const TensorInfo& tensor : tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return names;
}

const TensorInfo* Find(const std::vector<TensorInfo>& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  return found == tensors.end() ? nullptr : &*found;
}

// Whether the first dimension of all `tensors` can be up to `max_batch` rows.
Status CheckRows(const std::vector<TensorInfo>& tensors, std::string_view kind, int max_batch) {
  if (max_batch == 0) return {};
  constexpr std::string_view kRemedy =
      "set max_batch_size to 0 and give the dims with their first dimension, or export the model with a free "
      "one";
  for (const TensorInfo& tensor : tensors) {
    if (tensor.shape.empty()) {
      return Invalid(fmt::format("max_batch_size is {}, but {} \"{}\" has no dimension for the rows: {}",
                                 max_batch, kind, tensor.name, kRemedy));
    }
    if (tensor.shape[0] < 0 || tensor.shape[0] == max_batch) continue;
    return Invalid(fmt::format("max_batch_size is {}, but {} \"{}\" has a fixed first dimension of {}: {}",
                               max_batch, kind, tensor.name, tensor.shape[0], kRemedy));
  }
  if (kind != "input" || !tensors.empty()) return {};
  return Invalid(fmt::format("max_batch_size is {}, but the model has no inputs: set it to 0", max_batch));
}

Result<TensorInfo> NarrowOne(const TensorInfo& file, const TensorInfo& config, std::string_view kind,
                             bool batched) {
  const auto contradict = [&](std::string_view configured, std::string_view found) {
    return Invalid(
        fmt::format("{} \"{}\" is {} there and {} in the model file", kind, file.name, configured, found));
  };
  if (file.dtype != config.dtype) return contradict(ToString(config.dtype), ToString(file.dtype));
  TensorInfo narrowed = file;
  if (file.any_rank) {
    // [-1] is how a shape is told that nobody knows.
    narrowed.any_rank = config.shape == file.shape;
    narrowed.shape = config.shape;
    return narrowed;
  }
  infer::Shape wanted = config.shape;
  const bool is_number = file.shape.size() == (batched ? 1 : 0);
  if (is_number && wanted.size() == file.shape.size() + 1 && wanted.back() == 1) wanted.pop_back();
  if (file.shape.size() != wanted.size()) return contradict(ToString(config.shape), ToString(file.shape));
  for (size_t i = 0; i < file.shape.size(); ++i) {
    if (file.shape[i] < 0) narrowed.shape[i] = wanted[i];
    if (file.shape[i] >= 0 && wanted[i] >= 0 && file.shape[i] != wanted[i])
      return contradict(ToString(config.shape), ToString(file.shape));
  }
  return narrowed;
}

// `tensor` is one that the configuration lists and `file` does not have.
std::unexpected<Error> NotThere(const Tensors& file, const std::string& name, std::string_view kind) {
  const auto left_out = std::ranges::find(file.left_out, name, &LeftOut::name);
  if (kind == "output" && left_out != file.left_out.end()) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("output \"{}\" is of type {}, which cannot be sent: leave it out of the "
                            "configuration",
                            name, left_out->datatype));
  }
  return Invalid(fmt::format("{} \"{}\" is not in the model file, which has: {}", kind, name,
                             Names(kind == "input" ? file.inputs : file.outputs)));
}

Result<std::vector<TensorInfo>> NarrowInputs(const Tensors& file, const Config& config) {
  if (config.inputs.empty()) return file.inputs;
  std::vector<TensorInfo> narrowed;
  for (const ConfigTensor& tensor : config.inputs) {
    const TensorInfo* own = Find(file.inputs, tensor.info.name);
    const TensorInfo* found = own != nullptr ? own : Find(file.filled, tensor.info.name);
    if (found == nullptr) return NotThere(file, tensor.info.name, "input");
    if (own != nullptr && tensor.optional) {
      return Invalid(fmt::format("input \"{}\" is optional there, and the model file has no value for it",
                                 tensor.info.name));
    }
    TensorInfo wanted = tensor.info;
    wanted.shape = tensor.model_shape();
    narrowed.push_back(TRY(NarrowOne(*found, wanted, "input", config.max_batch > 0)));
    narrowed.back().optional = tensor.optional;
  }
  return narrowed;
}

Result<std::vector<TensorInfo>> NarrowOutputs(const Tensors& file, const Config& config) {
  if (config.outputs.empty()) return file.outputs;
  std::vector<TensorInfo> narrowed;
  for (const ConfigTensor& tensor : config.outputs) {
    const TensorInfo* found = Find(file.outputs, tensor.info.name);
    if (found == nullptr) return NotThere(file, tensor.info.name, "output");
    TensorInfo wanted = tensor.info;
    wanted.shape = tensor.model_shape();
    narrowed.push_back(TRY(NarrowOne(*found, wanted, "output", config.max_batch > 0)));
  }
  return narrowed;
}

// The tensor that a recipe names, or means by naming none.
Result<TensorInfo> Named(const std::vector<TensorInfo>& tensors, const std::string& name,
                         std::string_view kind) {
  if (name.empty() && tensors.size() == 1) return tensors.front();
  if (name.empty())
    return Invalid(
        fmt::format("names no {}, and the model has {}: {}", kind, tensors.size(), Names(tensors)));
  if (const TensorInfo* found = Find(tensors, name)) return *found;
  return Invalid(fmt::format("{} \"{}\" is not in the model, which has: {}", kind, name, Names(tensors)));
}

Status CheckInput(const dataset::Recipe& recipe, const TensorInfo& input) {
  const auto wanted =
      recipe.datatype == dataset::ElementType::kFp32 ? infer::DType::kFp32 : infer::DType::kUint8;
  if (input.dtype != wanted) {
    return Invalid(fmt::format("makes {}, but input \"{}\" takes {}", ToString(wanted), input.name,
                               ToString(input.dtype)));
  }
  const std::string shape = ToString(input.shape);
  if (input.shape.size() != 4) {
    return Invalid(
        fmt::format("makes pictures of four dimensions, but input \"{}\" is {}", input.name, shape));
  }
  const bool planes = recipe.layout == dataset::Layout::kNchw;
  const std::string_view layout = planes ? "NCHW" : "NHWC";
  const int64_t channels = input.shape[planes ? 1 : 3], height = input.shape[planes ? 2 : 1],
                width = input.shape[planes ? 3 : 2];
  const auto differs = [](int64_t dim, int made) { return dim >= 0 && dim != made; };
  if (differs(channels, recipe.geometry.channel_count())) {
    return Invalid(fmt::format("makes {} channels as {}, but input \"{}\" is {}",
                               recipe.geometry.channel_count(), layout, input.name, shape));
  }
  const std::optional<dataset::Size> size = recipe.geometry.OutputSize();
  if (!size && (height >= 0 || width >= 0)) {
    return Invalid(fmt::format("gives every picture its own size, but input \"{}\" is {}; add a crop",
                               input.name, shape));
  }
  if (size && (differs(width, size->width) || differs(height, size->height))) {
    return Invalid(fmt::format("makes pictures of {}x{} as {}, but input \"{}\" is {}", size->width,
                               size->height, layout, input.name, shape));
  }
  return {};
}

}  // namespace

Result<Tensors> Narrow(const Tensors& file, const Config& config) {
  Tensors narrowed{.inputs = TRY(NarrowInputs(file, config)), .outputs = TRY(NarrowOutputs(file, config))};
  narrowed.left_out = file.left_out;
  TRY_STATUS(CheckRows(narrowed.inputs, "input", config.max_batch));
  TRY_STATUS(CheckRows(narrowed.outputs, "output", config.max_batch));
  for (const TensorInfo& input : file.inputs) {
    if (Find(narrowed.inputs, input.name) == nullptr) {
      return Invalid(fmt::format("input \"{}\" of the model file is missing", input.name));
    }
  }
  return narrowed;
}

Status CheckFits(const dataset::Recipe& recipe, const Tensors& tensors) {
  std::vector<TensorInfo> required = tensors.inputs;
  std::erase_if(required, [](const TensorInfo& input) { return input.optional; });
  const TensorInfo input = TRY(Named(required, recipe.input, "input"));
  if (required.size() > 1) {
    return Invalid(
        fmt::format("fills one input, and the model has {}: {}", required.size(), Names(required)));
  }
  TRY_STATUS(CheckInput(recipe, input));
  TRY_STATUS(Named(tensors.outputs, recipe.output, "output"));
  return {};
}

}  // namespace weir::model
