#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/count.h"
#include "dataset/recipe.h"
#include "infer/runner.h"
#include "load/session/target.h"
#include "model/model.h"

namespace weir::load {
namespace {

class LocalTarget final : public Target {
 public:
  explicit LocalTarget(const Clock& clock) : clock_(clock) {}
  Status Open(const LoadOptions& load, int most_in_flight);

  infer::Service& service() override { return *runner_; }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return ""; }
  std::string Title() const override {
    return fmt::format("{} in this process: {} {}, {}, {}", info_.name, opened_.engine->name(),
                       opened_.engine->version(), opened_.session->precision(),
                       infer::PlacesText(*opened_.session));
  }
  std::string protocol() const override { return "in-process"; }
  std::optional<infer::PhaseTotals> Statistics() override { return std::nullopt; }
  bool takes_pixels() const override { return opened_.session->pixels().has_value(); }
  std::map<std::string, std::string> Libraries() const override {
    return {{opened_.engine->name(), opened_.engine->version()}};
  }
  Status Prepare(Requests& requests) override;
  void GiveUp() override;

 private:
  const Clock& clock_;
  model::Model model_;
  infer::ModelInfo info_;
  model::OpenedSession opened_;
  int most_in_flight_ = 0;
  std::unique_ptr<infer::Runner> runner_;
};

// The requests lie where the engine takes them fastest, as those of an application do.
Status LocalTarget::Prepare(Requests& requests) {
  for (infer::Request& request : requests.pool) {
    for (infer::Tensor& input : request.inputs) {
      Bytes memory = opened_.session->MakeInputMemory(input.data.size());
      std::ranges::copy(input.data.span(), memory.mutable_span().begin());
      input.data = std::move(memory);
    }
  }
  return {};
}

void LocalTarget::GiveUp() {
  runner_.reset();
  runner_ = infer::Runner::Create(opened_.session, clock_, {.max_queue = most_in_flight_ + 1}).value();
}

Status LocalTarget::Open(const LoadOptions& load, int most_in_flight) {
  model_ = TRY(model::OpenModel(load.target, {.recipe = load.recipe,
                                              .version = load.version,
                                              .link_roots = TRY(model::LinkRoots(load.allow_links))}));
  infer::SessionOptions options = model::SessionDefaults(model_);
  if (!load.precision.empty()) options.precision = load.precision;
  if (!load.device.empty()) options.devices = TRY_CONTEXT(infer::ParseDevices(load.device), "--device");
  if (load.cuda_graph) options.cuda_graph = true;
  if (load.engine_threads > 0) options.threads = load.engine_threads;
  if (load.engine_streams > 0) options.streams = load.engine_streams;
  options = TRY(model::WithPreprocess(model_, load.preprocess, std::move(options)));
  options.batch = load.batch;
  options.batches = {load.batch};
  opened_ = TRY(model::OpenSession(model_, load.engine, options, clock_));
  // Below the server's rules: what the engine is given, first dimension and all.
  const bool batches =
      !model_.fixed_batch && std::ranges::all_of(model_.inputs, [](const infer::TensorInfo& input) {
        return !input.shape.empty() && input.shape.front() == -1;
      });
  info_ = {.name = model_.name,
           .versions = {},
           .platform = opened_.engine->name(),
           .inputs = model_.inputs,
           .outputs = model_.outputs,
           .max_batch = batches ? model_.max_batch.value_or(65536) : 0,
           .parameters = {}};
  info_.inputs.insert(info_.inputs.end(), model_.optional_inputs.begin(), model_.optional_inputs.end());
  if (const auto pixels = opened_.session->pixels()) {
    const auto input = std::ranges::find(info_.inputs, pixels->input, &infer::TensorInfo::name);
    CHECK(input != info_.inputs.end());
    input->dtype = infer::DType::kUint8;
    input->shape = {input->shape.front(), pixels->height, pixels->width, pixels->channels};
  }
  if (model_.recipe) {
    dataset::Recipe recipe = *model_.recipe;
    recipe.labels.clear();  // a path of this machine
    info_.parameters["recipe"] = dataset::FormatRecipe(recipe);
  }
  most_in_flight_ = most_in_flight;
  runner_ = TRY(infer::Runner::Create(opened_.session, clock_, {.max_queue = most_in_flight + 1}));
  return {};
}

}  // namespace

Result<std::unique_ptr<Target>> OpenLocalTarget(const LoadOptions& load, const Clock& clock,
                                                int most_in_flight) {
  auto local = std::make_unique<LocalTarget>(clock);
  TRY_STATUS(local->Open(load, most_in_flight));
  return local;
}

}  // namespace weir::load
