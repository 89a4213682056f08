#include "serve/api.h"

#include <utility>

#include "wire/infer_rules.h"

namespace weir::serve {
namespace {

std::unexpected<Error> RegionsAreOff() {
  return Fail(ErrorCode::kUnsupported,
              "shared memory of clients is off: start the server with --allow-client-shm");
}

std::string PlatformOf(const std::string& engine) {
  return engine == "onnxruntime" ? "onnxruntime_onnx" : engine;
}

wire::ModelStatistics StatisticsOf(const ServedModel& served, const WallTime& wall) {
  wire::ModelStatistics statistics = served.statistics.Get(wall);
  statistics.name = served.name;
  statistics.version = served.version;
  return statistics;
}

}  // namespace

ServerApi::ServerApi(Options options, Parts parts, const Clock& clock)
    : options_(std::move(options)), parts_(parts), clock_(clock), wall_(clock.Now()) {}

Status ServerApi::Ready() {
  if (life_ != Life::kServing) return Fail(ErrorCode::kOverloaded, "the server is stopping");
  if (!options_.strict_readiness && parts_.repository.WaitUntilLoaded(Instant{})) return {};
  return parts_.repository.AllReady();
}

Status ServerApi::ModelReady(const std::string& model, const std::string& version) {
  const auto served = TRY(parts_.repository.Find(model, version));
  if (life_ != Life::kServing) return Fail(ErrorCode::kOverloaded, "the server is stopping");
  if (const Status well = served->loaded.CheckEngine(clock_.Now()); !well)
    return Context(served->What(), well.error());
  return {};
}

wire::ServerMetadata ServerApi::Server() {
  wire::ServerMetadata server{.name = "weir", .version = options_.version};
  server.extensions = {"binary_tensor_data", "classification",  "model_configuration",
                       "parameters",         "schedule_policy", "statistics"};
  server.extensions.emplace_back(wire::kDurations);
  // The index is there always; loading and unloading only where they are allowed.
  if (options_.explicit_control) server.extensions.emplace_back("model_repository");
  if (options_.allow_regions) server.extensions.emplace_back("system_shared_memory");
  return server;
}

Result<wire::ModelMetadata> ServerApi::Metadata(const std::string& model, const std::string& version) {
  const auto served = TRY(parts_.repository.Find(model, version));
  return wire::ModelMetadata{.name = served->name,
                             .versions = parts_.repository.VersionsOf(model),
                             .platform = PlatformOf(served->loaded.engine()),
                             .inputs = served->inputs,
                             .outputs = served->outputs};
}

Result<wire::ModelConfig> ServerApi::Config(const std::string& model, const std::string& version) {
  const auto served = TRY(parts_.repository.Find(model, version));
  return wire::ModelConfig{.json = served->config.json, .message = served->config.message};
}

Result<std::vector<wire::ModelStatistics>> ServerApi::Statistics(const std::string& model,
                                                                 const std::string& version) {
  std::vector<wire::ModelStatistics> statistics;
  if (model.empty() || version.empty()) {
    for (const auto& served : parts_.repository.Ready()) {
      if (model.empty() || served->name == model) statistics.push_back(StatisticsOf(*served, wall_));
    }
    if (model.empty() || !statistics.empty()) return statistics;
  }
  statistics.push_back(StatisticsOf(*TRY(parts_.repository.Find(model, version)), wall_));
  return statistics;
}

std::vector<wire::IndexEntry> ServerApi::Index(bool ready_only) {
  return parts_.repository.Index(ready_only);
}

void ServerApi::Load(const std::string& model, const std::string& config, Done done) {
  parts_.repository.Load(model, config, std::move(done));
}
void ServerApi::Unload(const std::string& model, Done done) {
  parts_.repository.Unload(model, std::move(done));
}

Status ServerApi::RegisterRegion(const wire::Region& region) {
  if (parts_.regions == nullptr) return RegionsAreOff();
  return parts_.regions->Register(region);
}
Status ServerApi::UnregisterRegion(const std::string& name) {
  if (parts_.regions == nullptr) return RegionsAreOff();
  return parts_.regions->Unregister(name);
}
Result<std::vector<wire::Region>> ServerApi::Regions(const std::string& name) {
  if (parts_.regions == nullptr) return RegionsAreOff();
  return parts_.regions->List(name);
}

void ServerApi::Infer(wire::InferRequest request, infer::Completion completion) {
  const auto refuse = [&](DoorRefusal refusal, Error error) {
    parts_.metrics.Refused(refusal);
    parts_.failures.Tell(error, request.request.id);
    completion.Answer(std::unexpected(std::move(error)), {});
  };
  if (life_ == Life::kStopping)
    return refuse(DoorRefusal::kStopping,
                  {ErrorCode::kOverloaded, "the server is stopping: send it elsewhere"});
  auto served = parts_.repository.Find(request.request.model, request.request.version);
  if (!served) {
    const bool later = served.error().code == ErrorCode::kOverloaded;
    return refuse(later ? DoorRefusal::kNotReady : DoorRefusal::kUnknownModel, served.error());
  }
  parts_.path.Start(*std::move(served), std::move(request), std::move(completion));
}

void ServerApi::Observe(const wire::Exchange& exchange) {
  if (exchange.error) return;
  if (const auto served = parts_.repository.Find(exchange.model, exchange.version))
    (*served)->metrics.Observe(exchange);
}

void ServerApi::Gauge() {
  const Instant now = clock_.Now();
  for (const auto& served : parts_.repository.Ready()) {
    const bool hangs = served->loaded.hang(now).has_value();
    served->metrics.SetHung(hangs);
    served->metrics.SetReady(!hangs && !served->loaded.dead());
    // The queue is the model's own, whatever the name the call came under.
    if (served->payload != Payload::kTensor) continue;
    served->metrics.SetPending(served->loaded.runner().load().queued_calls);
    if (const auto stats = served->loaded.session().Stats()) {
      Duration busy{};
      for (const Duration stream : stats->busy) busy += stream;
      served->metrics.SetBusy(busy, std::ssize(stats->busy));
    }
  }
}

}  // namespace weir::serve
