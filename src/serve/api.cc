#include "serve/api.h"

#include <fmt/format.h>

#include <utility>

#include "oip/infer_rules.h"
#include "oip/triton_names.h"

namespace weir::serve {
namespace {

std::unexpected<Error> RegionsAreOff() {
  return Fail(ErrorCode::kUnsupported,
              "shared memory of clients is off: start the server with --allow-client-shm");
}

Error TritonsControlIsOff() {
  return oip::triton::ControlIsOff("start the server with --model-control-mode explicit");
}

std::string PlatformOf(const std::string& engine) {
  return engine == "onnxruntime" ? "onnxruntime_onnx" : engine;
}

oip::ModelStatistics StatisticsOf(const ServedModel& served, const WallTime& wall) {
  oip::ModelStatistics statistics = served.statistics.Get(wall);
  statistics.name = served.name;
  statistics.version = served.version;
  return statistics;
}

}  // namespace

ServerApi::ServerApi(Options options, Parts parts, const Clock& clock)
    : options_(std::move(options)), parts_(parts), clock_(clock), wall_(clock.Now()) {}

// The error for a model that cannot be had, as Triton words it.
Result<std::shared_ptr<ServedModel>> ServerApi::Find(const std::string& model,
                                                     const std::string& version) const {
  namespace triton = oip::triton;
  if (!IsTriton()) return parts_.repository.Find(model, version);
  TRY_STATUS(triton::CheckVersion(version));
  auto served = parts_.repository.Find(model, version);
  if (served) return served;
  const Error& why = served.error();
  if (!parts_.repository.Knows(model)) return std::unexpected(triton::UnknownModel(model));
  if (version.empty()) return Fail(why.code, triton::NoVersions(model, why.message).message);
  return std::unexpected(why.code == ErrorCode::kOverloaded
                             ? triton::VersionNotReady(model, version, why.message)
                             : triton::UnknownVersion(model, version));
}

Status ServerApi::Ready() {
  if (life_ != Life::kServing) return Fail(ErrorCode::kOverloaded, "the server is stopping");
  if (!options_.strict_readiness && parts_.repository.WaitUntilLoaded(Instant{})) return {};
  return parts_.repository.AllReady();
}

Status ServerApi::ModelReady(const std::string& model, const std::string& version) {
  const auto served = TRY(Find(model, version));
  if (life_ != Life::kServing) return Fail(ErrorCode::kOverloaded, "the server is stopping");
  if (const Status well = served->loaded.CheckEngine(clock_.Now()); !well)
    return Context(served->What(), well.error());
  return {};
}

oip::ServerMetadata ServerApi::Server() {
  oip::ServerMetadata server{.name = "weir", .version = options_.version};
  server.extensions = {"binary_tensor_data", "classification",  "model_configuration",
                       "parameters",         "schedule_policy", "statistics"};
  server.extensions.emplace_back(oip::kDurations);
  // The index is there always; loading and unloading only where they are allowed.
  if (options_.explicit_control) server.extensions.emplace_back("model_repository");
  if (options_.allow_regions) server.extensions.emplace_back("system_shared_memory");
  if (parts_.regions != nullptr && parts_.regions->has_gpu())
    server.extensions.emplace_back("cuda_shared_memory");
  if (IsTriton()) {
    server.name = oip::triton::kServerName;
    server.version = oip::triton::kServerVersion;
    if (options_.explicit_control) server.extensions.emplace_back("model_repository(unload_dependents)");
  }
  return server;
}

Result<oip::ModelMetadata> ServerApi::Metadata(const std::string& model, const std::string& version) {
  const auto served = TRY(Find(model, version));
  return oip::ModelMetadata{.name = served->name,
                            .versions = parts_.repository.VersionsOf(model),
                            .platform = PlatformOf(served->loaded.engine()),
                            .inputs = served->inputs,
                            .outputs = served->outputs};
}

Result<oip::ModelConfig> ServerApi::Config(const std::string& model, const std::string& version) {
  const auto served = TRY(Find(model, version));
  return oip::ModelConfig{.json = served->config.json, .message = served->config.message};
}

Result<std::string> ServerApi::Labels(const std::string& model, const std::string& version) {
  const auto served = TRY(parts_.repository.Find(model, version));
  std::string lines;
  for (const std::string& label : served->loaded.model().labels) lines += label + '\n';
  return lines;
}

Result<std::vector<oip::ModelStatistics>> ServerApi::Statistics(const std::string& model,
                                                                const std::string& version) {
  std::vector<oip::ModelStatistics> statistics;
  if (model.empty() || version.empty()) {
    for (const auto& served : parts_.repository.Ready()) {
      if (model.empty() || served->name == model) statistics.push_back(StatisticsOf(*served, wall_));
    }
    if (model.empty() || !statistics.empty()) return statistics;
  }
  statistics.push_back(StatisticsOf(*TRY(Find(model, version)), wall_));
  return statistics;
}

std::vector<oip::IndexEntry> ServerApi::Index(bool ready_only) { return parts_.repository.Index(ready_only); }

Status ServerApi::MayControl() {
  if (IsTriton() && !options_.explicit_control) return std::unexpected(TritonsControlIsOff());
  return parts_.repository.CheckControl();
}
void ServerApi::Load(const std::string& model, const std::string& config, Done done) {
  if (Status may = MayControl(); !may) return done(std::move(may));
  if (!IsTriton()) return parts_.repository.Load(model, config, std::move(done));
  parts_.repository.Load(model, config, [model, done = std::move(done)](Status loaded) mutable {
    if (loaded) return done({});
    done(std::unexpected(oip::triton::FailedToLoad(model, loaded.error())));
  });
}
void ServerApi::Unload(const std::string& model, Done done) {
  if (Status may = MayControl(); !may) return done(std::move(may));
  parts_.repository.Unload(model, std::move(done));
}

Status ServerApi::RegisterRegion(const oip::Region& region) {
  if (parts_.regions == nullptr) return RegionsAreOff();
  if (IsTriton() && !region.name.empty() && parts_.regions->Has(region.name))
    return std::unexpected(oip::triton::RegionExists(region.name));
  return parts_.regions->Register(region);
}
Status ServerApi::UnregisterRegion(const std::string& name) {
  if (parts_.regions == nullptr) return RegionsAreOff();
  Status gone = parts_.regions->Unregister(name);
  const bool unknown = !gone && gone.error().code == ErrorCode::kNotFound;
  return unknown && IsTriton() ? Status() : gone;  // to Triton it is gone, too
}
Result<std::vector<oip::Region>> ServerApi::Regions(const std::string& name) {
  if (parts_.regions == nullptr) return RegionsAreOff();
  auto regions = parts_.regions->List(name);
  if (!regions && IsTriton()) return std::unexpected(oip::triton::UnknownRegion("system", name));
  return regions;
}

Status ServerApi::RegisterCudaRegion(const oip::CudaRegion& region) {
  const bool has_gpu = parts_.regions != nullptr && parts_.regions->has_gpu();
  if (IsTriton() && !has_gpu) return std::unexpected(oip::triton::NoGpu(region.name));
  if (parts_.regions == nullptr) return RegionsAreOff();
  if (IsTriton() && !region.name.empty() && parts_.regions->Has(region.name))
    return std::unexpected(oip::triton::RegionExists(region.name));
  return parts_.regions->Register(region);
}
Status ServerApi::UnregisterCudaRegion(const std::string& name) {
  if (parts_.regions != nullptr) parts_.regions->UnregisterCuda(name);
  return {};
}
Result<std::vector<oip::CudaRegion>> ServerApi::CudaRegions(const std::string& name) {
  auto regions = parts_.regions == nullptr ? std::vector<oip::CudaRegion>{} : parts_.regions->ListCuda(name);
  if (!regions.empty() || name.empty()) return regions;
  if (IsTriton()) return std::unexpected(oip::triton::UnknownRegion("cuda", name));
  return Fail(ErrorCode::kNotFound, fmt::format("region \"{}\" is not registered", name));
}

void ServerApi::Infer(oip::InferRequest request, infer::Completion completion) {
  const auto refuse = [&](RequestRefusal refusal, Error error) {
    parts_.metrics.Refused(refusal);
    parts_.failures.Tell(error, request.request.id);
    completion.Answer(std::unexpected(std::move(error)), {});
  };
  if (life_ == Life::kStopping)
    return refuse(RequestRefusal::kStopping,
                  {ErrorCode::kOverloaded, "the server is stopping: send it elsewhere"});
  auto served = Find(request.request.model, request.request.version);
  if (!served) {
    const bool later = served.error().code == ErrorCode::kOverloaded;
    return refuse(later ? RequestRefusal::kNotReady : RequestRefusal::kUnknownModel, served.error());
  }
  parts_.path.Start(*std::move(served), std::move(request), std::move(completion));
}

void ServerApi::Observe(const oip::RequestTrace& exchange) {
  if (exchange.error && !exchange.malformed) return;  // it is counted
  const auto served = parts_.repository.Find(exchange.model, exchange.version);
  if (!exchange.malformed) {
    if (served) (*served)->metrics.Observe(exchange);
  } else if (served) {
    (*served)->metrics.Refused(Refusal::kInvalid);
  } else {
    const bool unknown = exchange.error == ErrorCode::kNotFound;
    parts_.metrics.Refused(unknown ? RequestRefusal::kUnknownModel : RequestRefusal::kMalformed);
  }
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
