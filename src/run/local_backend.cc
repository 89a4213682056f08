#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/count.h"
#include "infer/runner.h"
#include "model/model.h"
#include "run/backend.h"

namespace weir::run {
namespace {

class LocalBackend final : public Backend {
 public:
  LocalBackend(const BackendOptions& options, const Clock& clock) : options_(options), clock_(clock) {}
  Status Open();

  Status Load() override;
  infer::Service& service() override { return *runner_; }
  int in_flight() const override {
    return options_.in_flight > 0 ? options_.in_flight : opened_.session->callers() + 1;
  }
  std::optional<std::string> lost() const override { return opened_.session->lost(); }
  bool invents_answers() const override { return opened_.session->invents_answers(); }
  std::string Title() const override;
  BackendDescription Describe() const override;
  std::map<std::string, std::string> Libraries() const override {
    return {{opened_.engine->name(), opened_.engine->version()}};
  }
  monitor::ResourceMonitor::Options WatchOptions() const override;
  void Begin() override {}
  void End() override {}
  void Attribute(double cpu_s, monitor::Resources& resources, Costs& costs) const override;

 private:
  Result<infer::SessionOptions> SessionOptions() const;

  const BackendOptions& options_;
  const Clock& clock_;
  model::Model model_;
  model::OpenedSession opened_;
  std::unique_ptr<infer::Runner> runner_;
};

Status LocalBackend::Open() {
  model_ = TRY(model::OpenModel(options_.model, {.recipe = options_.recipe,
                                                 .link_roots = TRY(model::LinkRoots(options_.allow_links))}));
  name_ = model_.name;
  Target target = TRY(MakeTarget({model_.name, model_.inputs, model_.outputs}, model_.recipe, model_.labels));
  target.fixed_batch = model_.fixed_batch;
  return Aim(std::move(target), model_.max_batch, options_);
}

// The user's options come first, then the model's configuration, then one stream a thread. In sync mode all
// threads work on one batch together, which is fastest.
Result<infer::SessionOptions> LocalBackend::SessionOptions() const {
  infer::SessionOptions options = model::SessionDefaults(model_);
  if (!options_.precision.empty()) options.precision = options_.precision;
  if (!options_.device.empty())
    options.devices = TRY_CONTEXT(infer::ParseDevices(options_.device), "--device");
  if (options_.cuda_graph) options.cuda_graph = true;
  if (options_.gpu_memory_mb > 0) options.gpu_memory_bytes = options_.gpu_memory_mb << 20;
  if (options_.threads > 0) options.threads = options_.threads;
  if (options_.streams > 0) {
    options.streams = options_.streams;
  } else if (options_.sync() && !model_.parameters.contains("streams")) {
    options.streams = 1;
  }
  options.cache_dir = options_.cache_dir;
  options.batch = batch();
  options.batches = {batch()};
  return model::WithPreprocess(model_, options_.preprocess, std::move(options));
}

Status LocalBackend::Load() {
  const Instant before = clock_.Now();
  opened_ = TRY(model::OpenSession(model_, options_.engine, TRY(SessionOptions()), clock_));
  prepare_s_ = Seconds(clock_.Now() - before);
  const infer::Shape& compiled = opened_.session->inputs().front().shape;
  if (!compiled.empty() && compiled.front() > 0) FixBatch(static_cast<int>(compiled.front()));
  if (opened_.session->pixels()) {  // which are then the application's input
    target_.recipe.layout = dataset::Layout::kNhwc;
    target_.recipe.datatype = dataset::ElementType::kUint8;
    const infer::PixelInput pixels = *opened_.session->pixels();
    target_.input.dtype = infer::DType::kUint8;
    target_.input.shape = {target_.input.shape.front(), pixels.height, pixels.width, pixels.channels};
  }
  target_.make_memory = [session = opened_.session](size_t bytes) { return session->MakeInputMemory(bytes); };
  runner_ = TRY(infer::Runner::Create(opened_.session, clock_, {.max_queue = in_flight() + 1}));
  return {};
}

std::string LocalBackend::Title() const {
  const std::string version = opened_.engine->version();  // the build behind the first dash is for the JSON
  return fmt::format("{} {}, {}, {}", opened_.engine->name(), version.substr(0, version.find('-')),
                     opened_.session->precision(), infer::PlacesText(*opened_.session));
}

BackendDescription LocalBackend::Describe() const {
  return {.engine = opened_.engine->name(),
          .engine_version = opened_.engine->version(),
          .precision = opened_.session->precision(),
          .not_batchable = model_.not_batchable,
          .threads = opened_.session->threads(),
          .streams = opened_.session->streams(),
          .server = {},
          .payload = {},
          .platform = {},
          .times = {}};
}

// An emulated accelerator stands in for the machine's GPUs and reports its own load. A real one keeps NVML in
// use; the load of a CPU engine is that of its threads.
monitor::ResourceMonitor::Options LocalBackend::WatchOptions() const {
  monitor::ResourceMonitor::Options options;
  if (!opened_.session->Stats()) return options;
  const auto busy = [&session = *opened_.session] {
    Duration sum{};
    const infer::EngineStats stats = *session.Stats();
    for (const Duration busy : stats.busy) sum += busy;
    return stats.busy.empty() ? sum : sum / static_cast<int64_t>(stats.busy.size());
  };
  if (opened_.session->invents_answers()) {
    options.device_label = "emulated";
    options.device_busy = busy;
  } else {
    options.gpu_events = busy;
    options.gpu_uuids = opened_.session->gpu_uuids();
  }
  return options;
}

void LocalBackend::Attribute(double cpu_s, monitor::Resources& resources, Costs& costs) const {
  costs.engine_threads = opened_.session->threads();
  costs.engine_streams = opened_.session->streams();
  if (resources.recogniser_cpu) costs.engine_cpu_s = resources.recogniser_cpu->mean * resources.wall_s;
  costs.other_cpu_s = std::max(0.0, cpu_s - costs.load_cpu_s - costs.engine_cpu_s);
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenLocalBackend(const BackendOptions& options, const Clock& clock) {
  if (options.payload != infer::Payload::kTensor) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--payload {} is for served models: in this process the model is given its tensor",
                    ToString(options.payload)));
  }
  auto backend = std::make_unique<LocalBackend>(options, clock);
  TRY_STATUS(backend->Open());
  return backend;
}

}  // namespace weir::run
