#include "run/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "infer/device.h"
#include "oip/client.h"

namespace weir::run {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Returns the tensor that the recipe names, or the only one.
Result<infer::TensorInfo> Pick(const ModelTensors& model, const std::vector<infer::TensorInfo>& all,
                               const std::string& name, const char* what) {
  if (name.empty() && all.size() == 1) return all.front();
  std::string names;
  for (const infer::TensorInfo& info : all) {
    if (info.name == name) return info;
    names += (names.empty() ? "" : ", ") + info.name;
  }
  return Invalid(
      fmt::format("model {}: the recipe names {} \"{}\"; the model has {}", model.name, what, name, names));
}

// Counts the classes of scores whose first dimension is the batch.
std::optional<int64_t> ClassesOf(const infer::TensorInfo& output, int first_class) {
  if (output.shape.size() < 2) return std::nullopt;
  const infer::Shape item(output.shape.begin() + 1, output.shape.end());
  const auto scores = infer::ElementCount(item);
  if (!scores || *scores <= first_class) return std::nullopt;
  return *scores - first_class;
}

}  // namespace

Result<Target> MakeTarget(const ModelTensors& model, const std::optional<dataset::Recipe>& recipe,
                          std::vector<std::string> labels) {
  if (!recipe) {
    return Invalid(
        fmt::format("model {0} does not say how pictures become its input: put recipe.yaml into its folder "
                    "(a bare file's "
                    "lies beside it, as {0}.recipe.yaml), or give it to weir run with --recipe FILE",
                    model.name));
  }
  Target target{.model = model.name, .version = {}, .recipe = *recipe, .labels = std::move(labels)};
  if (!recipe->geometry.OutputSize()) {
    return Invalid(
        "the recipe gives pictures of different sizes: it needs a crop, or a resize to a width and height");
  }
  target.input = TRY(Pick(model, model.inputs, recipe->input, "input"));
  const infer::TensorInfo output = TRY(Pick(model, model.outputs, recipe->output, "output"));
  target.output = output.name;
  target.classes = ClassesOf(output, recipe->first_class);
  if (model.inputs.size() == 1) return target;
  return Fail(ErrorCode::kUnsupported,
              fmt::format("model {} has {} inputs: pictures fill only one", model.name, model.inputs.size()));
}

Status Backend::Aim(Target target, std::optional<int> max_batch, const BackendOptions& options) {
  target_ = std::move(target);
  max_batch_ = max_batch;
  if (max_batch && !target_.fixed_batch && options.batch > *max_batch) {
    return Invalid(fmt::format("--batch {} is over the max_batch_size of {} in the configuration of {}",
                               options.batch, *max_batch, name_));
  }
  batch_ = options.batch > 0 ? options.batch : std::min(8, std::max(1, max_batch.value_or(8)));
  if (target_.fixed_batch) batch_ = *target_.fixed_batch;
  return {};
}

void Backend::FixBatch(int batch) { target_.fixed_batch = batch; }

void AddCosts(const Backend& backend, double cpu_s, monitor::Resources& resources, Costs& costs) {
  if (resources.client_cpu) {
    const double others = resources.client_cpu->mean * resources.wall_s - cpu_s;
    costs.foreign_cpu_s = std::clamp(others, 0.0, std::max(0.0, costs.cores * resources.wall_s - cpu_s));
  }
  backend.Attribute(cpu_s, resources, costs);
}

Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options, const Clock& clock) {
  const bool is_remote = oip::IsModelUrl(options.model);
  if (!is_remote && options.balance != BackendOptions().balance)
    return Invalid("--balance is of several servers: in this process there is one model");
  return is_remote ? OpenRemoteBackend(options, clock) : OpenLocalBackend(options, clock);
}

}  // namespace weir::run
