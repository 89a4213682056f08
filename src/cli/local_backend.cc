#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/backend.h"
#include "cli/console.h"
#include "infer/runner.h"
#include "model/model.h"

namespace weir::cli {
namespace {

class LocalBackend final : public Backend {
 public:
  LocalBackend(const RunFlags& flags, const Clock& clock) : flags_(flags), clock_(clock) {}
  Status Open();

  Status Load() override;
  infer::Service& service() override { return *runner_; }
  int in_flight() const override {
    return flags_.in_flight > 0 ? flags_.in_flight : opened_.session->callers() + 1;
  }
  bool invents_answers() const override { return opened_.session->Stats().has_value(); }
  std::string Title() const override;
  void Describe(Json& result) const override;
  std::map<std::string, std::string> Libraries() const override {
    return {{opened_.engine->name(), opened_.engine->version()}};
  }
  monitor::ResourceMonitor::Options WatchOptions() const override;
  void Begin() override {}
  void End() override {}
  void Attribute(double cpu_s, monitor::Resources& resources, run::Costs& costs) const override;
  std::string ServerLine(const run::Report&) const override { return ""; }

 private:
  infer::SessionOptions SessionOptions() const;

  const RunFlags& flags_;
  const Clock& clock_;
  model::Model model_;
  model::OpenedSession opened_;
  std::unique_ptr<infer::Runner> runner_;
};

Status LocalBackend::Open() {
  model_ = TRY(model::OpenModel(flags_.model, {.recipe = flags_.recipe}));
  name_ = model_.name;
  run::Target target =
      TRY(MakeTarget({model_.name, model_.inputs, model_.outputs}, model_.recipe, model_.labels));
  target.fixed_batch = model_.fixed_batch;
  return Aim(std::move(target), model_.max_batch, flags_);
}

// The user's word, else the model's configuration, else one stream a thread; but one batch at a time is
// soonest done by all threads together.
infer::SessionOptions LocalBackend::SessionOptions() const {
  infer::SessionOptions options = model::SessionDefaults(model_);
  if (!flags_.precision.empty()) options.precision = flags_.precision;
  if (flags_.threads > 0) options.threads = flags_.threads;
  if (flags_.streams > 0) {
    options.streams = flags_.streams;
  } else if (flags_.sync() && !model_.parameters.contains("streams")) {
    options.streams = 1;
  }
  options.cache_dir = flags_.cache_dir;
  options.batch = batch();
  return options;
}

Status LocalBackend::Load() {
  const Instant before = clock_.Now();
  opened_ = TRY(model::OpenSession(model_, flags_.engine, SessionOptions(), clock_));
  prepare_s_ = Seconds(clock_.Now() - before);
  const infer::Shape& compiled = opened_.session->inputs().front().shape;
  if (!compiled.empty() && compiled.front() > 0) FixBatch(static_cast<int>(compiled.front()));
  runner_ = TRY(infer::Runner::Create(opened_.session, clock_, {.max_queue = in_flight() + 1}));
  return {};
}

std::string LocalBackend::Title() const {
  const std::string version = opened_.engine->version();  // the build behind the first dash is for the JSON
  return fmt::format("{} {}, {}, {} in {}", opened_.engine->name(), version.substr(0, version.find('-')),
                     opened_.session->precision(), Count(opened_.session->threads(), "thread"),
                     Count(opened_.session->streams(), "stream"));
}

void LocalBackend::Describe(Json& result) const {
  result["engine"] = opened_.engine->name();
  result["engine_version"] = opened_.engine->version();
  result["precision"] = opened_.session->precision();
  result["threads"] = opened_.session->threads();
  result["streams"] = opened_.session->streams();
  if (!model_.not_batchable.empty()) result["not_batchable"] = model_.not_batchable;
}

// An accelerator tells its own load; CPU engines are told by their threads.
monitor::ResourceMonitor::Options LocalBackend::WatchOptions() const {
  monitor::ResourceMonitor::Options options;
  if (!opened_.session->Stats()) return options;
  options.device_label = "emulated";
  options.device_busy = [&session = *opened_.session] {
    Duration sum{};
    const infer::EngineStats stats = *session.Stats();
    for (const Duration busy : stats.busy) sum += busy;
    return stats.busy.empty() ? sum : sum / static_cast<int64_t>(stats.busy.size());
  };
  return options;
}

void LocalBackend::Attribute(double cpu_s, monitor::Resources& resources, run::Costs& costs) const {
  costs.engine_threads = opened_.session->threads();
  costs.engine_streams = opened_.session->streams();
  if (resources.recogniser_cpu) costs.engine_cpu_s = resources.recogniser_cpu->mean * resources.wall_s;
  costs.other_cpu_s = std::max(0.0, cpu_s - costs.load_cpu_s - costs.engine_cpu_s);
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenLocalRecogniser(const RunFlags& flags, const Clock& clock) {
  if (flags.payload != "tensor") {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--payload {} is for served models: in this process the model is given its tensor",
                    flags.payload));
  }
  auto recogniser = std::make_unique<LocalBackend>(flags, clock);
  TRY_STATUS(recogniser->Open());
  return recogniser;
}

}  // namespace weir::cli
