// Which of the protocol's routes a request takes.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace weir::oip {

enum class HttpAction {
  kServerLive,
  kServerReady,
  kServerMetadata,
  kModelMetadata,
  kModelReady,
  kModelConfig,
  kStatistics,  // of all models when `model` is empty
  kInfer,
  kIndex,
  kLoad,
  kUnload,
  kRegionStatus,  // of all regions when `region` is empty
  kRegionRegister,
  kRegionUnregister,  // as kRegionStatus
  kCudaRegionStatus,  // memory of a GPU: as kRegionStatus
  kCudaRegionRegister,
  kCudaRegionUnregister,
};

struct HttpRoute {
  HttpAction action{};
  std::string model, version, region;  // percent-decoded
  std::string repository;              // a name in front of "index" and "models": no server here has any

  bool operator==(const HttpRoute&) const = default;
};

struct NoHttpRoute {
  int status = 404;   // 404; 405; 400 for a path that is not one
  std::string allow;  // with 405: the verbs of this path
  std::string message;
};

// HEAD takes the routes of GET. `path` as sent, without the query; one trailing slash is passed over. Names
// are whatever stands between two slashes: they are looked up, never used as paths. Control characters and
// broken percent signs are refused.
std::variant<HttpRoute, NoHttpRoute> FindHttpRoute(std::string_view method, std::string_view path);

}  // namespace weir::oip
