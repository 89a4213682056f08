#include "oip/grpc/methods.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "http/error_body.h"
#include "oip/grpc/proto_reader.h"
#include "oip/health.pb.h"
#include "oip/model_facts.h"
#include "oip/oip.pb.h"
#include "oip/repository_rules.h"
#include "oip/status.h"
#include "oip/triton_names.h"

namespace weir::oip {
namespace {

using Done = GrpcMethod::Done;
namespace health = grpc::health::v1;

std::unexpected<Error> Wrong(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

template <typename Message>
Result<Message> Parse(std::string_view bytes) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return Wrong(fmt::format("not a message of type {}", Message::descriptor()->full_name()));
}

// A method that answers at once: Fill(serving, request, response).
template <typename Request, typename Response, Status (*Fill)(const GrpcServing&, const Request&, Response&)>
void Now(const GrpcServing& serving, std::string_view bytes, Done done) {
  const auto answer = [&]() -> Result<std::string> {
    const Request request = TRY(Parse<Request>(bytes));
    Response response;
    TRY_STATUS(Fill(serving, request, response));
    return response.SerializeAsString();
  };
  done(answer());
}

Status Live(const GrpcServing& serving, const inference::ServerLiveRequest&,
            inference::ServerLiveResponse& out) {
  out.set_live(serving.api.Live().has_value());
  return {};
}

Status Ready(const GrpcServing& serving, const inference::ServerReadyRequest&,
             inference::ServerReadyResponse& out) {
  out.set_ready(serving.api.Ready().has_value());
  return {};
}

// Clients ask to learn yes or no: an unknown model is not ready.
Status ModelReady(const GrpcServing& serving, const inference::ModelReadyRequest& in,
                  inference::ModelReadyResponse& out) {
  out.set_ready(serving.api.ModelReady(in.name(), in.version()).has_value());
  return {};
}

Status Server(const GrpcServing& serving, const inference::ServerMetadataRequest&,
              inference::ServerMetadataResponse& out) {
  const ServerMetadata server = serving.api.Server();
  out.set_name(server.name);
  out.set_version(server.version);
  for (const std::string& extension : server.extensions) out.add_extensions(extension);
  return {};
}

void Fill(const infer::TensorInfo& tensor, inference::ModelMetadataResponse::TensorMetadata& out) {
  out.set_name(tensor.name);
  out.set_datatype(std::string(infer::ToString(tensor.dtype)));
  for (const int64_t dim : tensor.shape) out.add_shape(dim);
}

Status Metadata(const GrpcServing& serving, const inference::ModelMetadataRequest& in,
                inference::ModelMetadataResponse& out) {
  const ModelMetadata model = TRY(serving.api.Metadata(in.name(), in.version()));
  out.set_name(model.name);
  for (const std::string& version : model.versions) out.add_versions(version);
  out.set_platform(model.platform);
  for (const infer::TensorInfo& tensor : model.inputs) Fill(tensor, *out.add_inputs());
  for (const infer::TensorInfo& tensor : model.outputs) Fill(tensor, *out.add_outputs());
  return {};
}

Status Config(const GrpcServing& serving, const inference::ModelConfigRequest& in,
              inference::ModelConfigResponse& out) {
  std::string config = TRY(serving.api.Config(in.name(), in.version())).message;
  if (serving.tells_labels) config += LabelsParameter(TRY(serving.api.Labels(in.name(), in.version())));
  out.set_config(std::move(config));
  return {};
}

void Fill(const DurationCount& duration, inference::StatisticDuration& out) {
  out.set_count(duration.count);
  out.set_ns(static_cast<uint64_t>(duration.total.count()));
}

void Fill(const ModelStatistics& model, inference::ModelStatistics& out) {
  out.set_name(model.name);
  out.set_version(model.version);
  out.set_last_inference(model.last_inference_ms);
  out.set_inference_count(model.inference_count);
  out.set_execution_count(model.execution_count);
  inference::InferStatistics& stats = *out.mutable_inference_stats();
  Fill(model.success, *stats.mutable_success());
  Fill(model.fail, *stats.mutable_fail());
  Fill(model.queue, *stats.mutable_queue());
  Fill(model.compute_input, *stats.mutable_compute_input());
  Fill(model.compute_infer, *stats.mutable_compute_infer());
  Fill(model.compute_output, *stats.mutable_compute_output());
  Fill(DurationCount{}, *stats.mutable_cache_hit());  // there is no cache
  Fill(DurationCount{}, *stats.mutable_cache_miss());
  for (const BatchStatistics& batch : model.batches) {
    inference::InferBatchStatistics& entry = *out.add_batch_stats();
    entry.set_batch_size(batch.batch_size);
    Fill(batch.compute_input, *entry.mutable_compute_input());
    Fill(batch.compute_infer, *entry.mutable_compute_infer());
    Fill(batch.compute_output, *entry.mutable_compute_output());
  }
}

Status Statistics(const GrpcServing& serving, const inference::ModelStatisticsRequest& in,
                  inference::ModelStatisticsResponse& out) {
  for (const ModelStatistics& model : TRY(serving.api.Statistics(in.name(), in.version()))) {
    Fill(model, *out.add_model_stats());
  }
  return {};
}

Status Index(const GrpcServing& serving, const inference::RepositoryIndexRequest& in,
             inference::RepositoryIndexResponse& out) {
  TRY_STATUS(CheckRepository(in.repository_name()));
  for (const IndexEntry& entry : serving.api.Index(in.ready())) {
    inference::RepositoryIndexResponse::ModelIndex& model = *out.add_models();
    model.set_name(entry.name);
    model.set_version(entry.version);
    model.set_state(entry.state);
    model.set_reason(entry.reason);
  }
  return {};
}

// The "config" parameter; empty: none.
Result<std::string> LoadConfig(const inference::RepositoryModelLoadRequest& in) {
  TRY_STATUS(CheckRepository(in.repository_name()));
  std::string config;
  for (const auto& [key, value] : in.parameters())
    TRY_STATUS(SetLoadParameter(key, value.has_string_param() ? &value.string_param() : nullptr, config));
  return config;
}

Status CheckUnload(const inference::RepositoryModelUnloadRequest& in) {
  TRY_STATUS(CheckRepository(in.repository_name()));
  for (const auto& [key, value] : in.parameters())
    TRY_STATUS(CheckUnloadParameter(key, value.has_bool_param()));
  return {};
}

// Both answer with a message without fields, which has no bytes.
Api::Done Emptily(Done done) {
  return [done = std::move(done)](Status status) mutable {
    if (status) return done(std::string());
    done(std::unexpected(std::move(status).error()));
  };
}

void Load(const GrpcServing& serving, std::string_view bytes, Done done) {
  if (const Status may = serving.api.MayControl(); !may) return done(std::unexpected(may.error()));
  const auto request = Parse<inference::RepositoryModelLoadRequest>(bytes);
  if (!request) return done(std::unexpected(request.error()));
  const Result<std::string> config = LoadConfig(*request);
  if (!config) {
    const bool as_triton = serving.compat == Compat::kTriton;
    return done(std::unexpected(as_triton ? triton::FailedToLoad(request->model_name(), config.error())
                                          : config.error()));
  }
  serving.api.Load(request->model_name(), *config, Emptily(std::move(done)));
}

void Unload(const GrpcServing& serving, std::string_view bytes, Done done) {
  if (const Status may = serving.api.MayControl(); !may) return done(std::unexpected(may.error()));
  const auto request = Parse<inference::RepositoryModelUnloadRequest>(bytes);
  if (!request) return done(std::unexpected(request.error()));
  if (Status good = CheckUnload(*request); !good) return done(std::unexpected(good.error()));
  serving.api.Unload(request->model_name(), Emptily(std::move(done)));
}

Status CheckRegions(const GrpcServing& serving) {
  if (serving.allow_regions) return {};
  return Fail(ErrorCode::kUnsupported,
              "shared memory of clients is off: start the server with --allow-client-shm");
}

Status RegionStatus(const GrpcServing& serving, const inference::SystemSharedMemoryStatusRequest& in,
                    inference::SystemSharedMemoryStatusResponse& out) {
  TRY_STATUS(CheckRegions(serving));
  for (const Region& region : TRY(serving.api.Regions(in.name()))) {
    auto& status = (*out.mutable_regions())[region.name];
    status.set_name(region.name);
    status.set_key(region.key);
    status.set_offset(region.offset);
    status.set_byte_size(region.byte_size);
  }
  return {};
}

Status RegisterRegion(const GrpcServing& serving, const inference::SystemSharedMemoryRegisterRequest& in,
                      inference::SystemSharedMemoryRegisterResponse&) {
  TRY_STATUS(CheckRegions(serving));
  return serving.api.RegisterRegion({in.name(), in.key(), in.offset(), in.byte_size()});
}

Status UnregisterRegion(const GrpcServing& serving, const inference::SystemSharedMemoryUnregisterRequest& in,
                        inference::SystemSharedMemoryUnregisterResponse&) {
  TRY_STATUS(CheckRegions(serving));
  return serving.api.UnregisterRegion(in.name());
}

Status CudaStatus(const GrpcServing& serving, const inference::CudaSharedMemoryStatusRequest& in,
                  inference::CudaSharedMemoryStatusResponse& out) {
  for (const CudaRegion& region : TRY(serving.api.CudaRegions(in.name()))) {
    auto& status = (*out.mutable_regions())[region.name];
    status.set_name(region.name);
    status.set_device_id(static_cast<uint64_t>(region.device));
    status.set_byte_size(region.byte_size);
  }
  return {};
}

Status RegisterCuda(const GrpcServing& serving, const inference::CudaSharedMemoryRegisterRequest& in,
                    inference::CudaSharedMemoryRegisterResponse&) {
  return serving.api.RegisterCudaRegion({in.name(), in.raw_handle(), in.device_id(), in.byte_size()});
}

Status UnregisterCuda(const GrpcServing& serving, const inference::CudaSharedMemoryUnregisterRequest& in,
                      inference::CudaSharedMemoryUnregisterResponse&) {
  return serving.api.UnregisterCudaRegion(in.name());
}

health::HealthCheckResponse::ServingStatus HealthOf(Api& api, const std::string& service) {
  if (!service.empty() && service != "inference.GRPCInferenceService") {
    return health::HealthCheckResponse::SERVICE_UNKNOWN;
  }
  return api.Ready() ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING;
}

Status CheckHealth(const GrpcServing& serving, const health::HealthCheckRequest& in,
                   health::HealthCheckResponse& out) {
  out.set_status(HealthOf(serving.api, in.service()));
  if (out.status() != health::HealthCheckResponse::SERVICE_UNKNOWN) return {};
  return Fail(ErrorCode::kNotFound, fmt::format("there is no service {}", Quoted(in.service())));
}

#define INFERENCE "/inference.GRPCInferenceService/"
#define NOW(name, function) \
  {INFERENCE #name, Now<inference::name##Request, inference::name##Response, function>}
constexpr GrpcMethod kMethods[] = {
    NOW(ServerLive, Live),
    NOW(ServerReady, Ready),
    NOW(ModelReady, ModelReady),
    NOW(ServerMetadata, Server),
    NOW(ModelMetadata, Metadata),
    NOW(ModelConfig, Config),
    NOW(ModelStatistics, Statistics),
    NOW(RepositoryIndex, Index),
    {INFERENCE "RepositoryModelLoad", Load},
    {INFERENCE "RepositoryModelUnload", Unload},
    NOW(SystemSharedMemoryStatus, RegionStatus),
    NOW(SystemSharedMemoryRegister, RegisterRegion),
    NOW(SystemSharedMemoryUnregister, UnregisterRegion),
    NOW(CudaSharedMemoryStatus, CudaStatus),
    NOW(CudaSharedMemoryRegister, RegisterCuda),
    NOW(CudaSharedMemoryUnregister, UnregisterCuda),
    {"/grpc.health.v1.Health/Check",
     Now<health::HealthCheckRequest, health::HealthCheckResponse, CheckHealth>},
};

}  // namespace

std::span<const GrpcMethod> GrpcMethods() { return kMethods; }

Result<std::string> WatchHealth(Api& api, std::string_view message) {
  const health::HealthCheckRequest request = TRY(Parse<health::HealthCheckRequest>(message));
  health::HealthCheckResponse response;
  response.set_status(HealthOf(api, request.service()));
  return response.SerializeAsString();
}

std::string FindRequestId(std::span<const Bytes> message) {
  constexpr uint32_t kId = Tag(3, WireType::kLength);
  ProtoReader reader(message), field(message);
  std::string id;
  for (uint32_t tag = 0; !reader.AtEnd() && reader.ReadTag(tag);) {
    if (tag != kId) {
      if (!reader.SkipValue(tag)) break;
    } else if (reader.ReadMessage(field)) {
      id = field.Take(1).text();
    } else {
      break;
    }
  }
  return IsUtf8(id) ? id : "";
}

std::string WriteStreamError(const std::string& id, const Error& error) {
  inference::ModelStreamInferResponse response;
  response.set_error_message(http::ErrorText(error));
  response.mutable_infer_response()->set_id(id);  // so that the client knows which of its requests failed
  return response.SerializeAsString();
}

std::string WriteStreamPrefix(size_t size) {
  constexpr int kBytesOfField2 = 2 << 3 | 2;
  std::string prefix(1, static_cast<char>(kBytesOfField2));
  for (; size >= 0x80; size >>= 7) prefix += static_cast<char>((size & 0x7f) | 0x80);
  prefix += static_cast<char>(size);
  return prefix;
}

}  // namespace weir::oip
