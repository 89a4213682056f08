// The gRPC methods beside inference and the streams: a serialised message in, a serialised message out.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "oip/api.h"
#include "oip/status.h"

namespace weir::oip {

struct GrpcServing {
  Api& api;
  bool allow_regions = false;
  bool tells_labels = false;  // the client asks for them: kLabelsHeader
  Compat compat = Compat::kNone;
};

struct GrpcMethod {
  using Done = std::move_only_function<void(Result<std::string>)>;

  const char* name;  // "/inference.GRPCInferenceService/ServerLive"
  // `done` is called once, before it returns or later on another thread. `serving` is not kept.
  void (*serve)(const GrpcServing& serving, std::string_view message, Done done);
};
std::span<const GrpcMethod> GrpcMethods();

inline constexpr const char* kModelInferName = "/inference.GRPCInferenceService/ModelInfer";
inline constexpr const char* kModelStreamInferName = "/inference.GRPCInferenceService/ModelStreamInfer";
inline constexpr const char* kHealthWatchName = "/grpc.health.v1.Health/Watch";

// Returns the HealthCheckResponse for the service that the grpc.health.v1 request `message` names. An unknown
// service is SERVICE_UNKNOWN. kInvalidArgument for what is no HealthCheckRequest.
Result<std::string> WatchHealth(Api& api, std::string_view message);

// The id in a ModelInferRequest, also in one that is refused; empty where none can be found.
std::string FindRequestId(std::span<const Bytes> message);
// A ModelStreamInferResponse that says what went wrong with the request of that id.
std::string WriteStreamError(const std::string& id, const Error& error);
// Returns the bytes before a ModelInferResponse of `size` bytes that make it a ModelStreamInferResponse.
std::string WriteStreamPrefix(size_t size);

}  // namespace weir::oip
