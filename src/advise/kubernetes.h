// The manifests of a server in a cluster. Pure: text out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::advise {

inline constexpr std::string_view kRepository = "/models";  // the model repository in a container

struct Pod {
  std::string server;                  // "weir", or the name of another one
  std::string model;                   // its name
  std::string image;                   // of the container
  std::vector<std::string> command;    // in the place of the image's own; empty: the image's
  std::vector<std::string> arguments;  // of the command
  int64_t replicas = 1;
  int64_t gpus = 0;                    // of one replica
  std::optional<double> server_cores;  // that one instance used at most
  std::optional<double> memory_bytes;  // likewise
};

// Returns a name as Kubernetes takes it (RFC 1123 label): at most 50 characters, lower case.
std::string KubernetesName(const std::string& server, const std::string& model);

// Returns a Deployment, a Service and a HorizontalPodAutoscaler.
std::string KubernetesText(const Pod& pod);
// Returns a KServe InferenceService.
std::string KserveText(const Pod& pod);

}  // namespace weir::advise
