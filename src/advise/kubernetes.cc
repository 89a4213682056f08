#include "advise/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/json.h"

namespace weir::advise {
namespace {

constexpr const char* kOwnServer = "weir";

// Resources of a pod. Requests are the maximum that one instance used; the memory limit is 1.5 times that.
struct PodResources {
  std::string cpu, memory, memory_limit;
};

PodResources ResourcesOf(const Pod& pod) {
  const double cores = std::max(0.1, pod.server_cores.value_or(1));
  const double mib = std::max(64.0, pod.memory_bytes.value_or(1 << 30) / (1 << 20));
  return {.cpu = fmt::format("{}m", static_cast<int64_t>(std::ceil(cores * 1000))),
          .memory = fmt::format("{}Mi", static_cast<int64_t>(std::ceil(mib))),
          .memory_limit = fmt::format("{}Mi", static_cast<int64_t>(std::ceil(mib * 1.5)))};
}

Json ContainerJson(const Pod& pod) {
  const PodResources resources = ResourcesOf(pod);
  const auto probe = [](const char* path) { return Json{{"httpGet", {{"path", path}, {"port", "http"}}}}; };
  Json ready = probe("/v2/health/ready"), live = probe("/v2/health/live"),
       started = probe("/v2/health/ready");
  ready["periodSeconds"] = 5;
  live["periodSeconds"] = 10;
  started["failureThreshold"] = 60;
  started["periodSeconds"] = 5;
  Json limits{{"memory", resources.memory_limit}};
  if (pod.gpus > 0) limits["nvidia.com/gpu"] = pod.gpus;
  Json container{{"name", "server"},
                 {"image", pod.image},
                 {"args", pod.arguments},
                 {"ports",
                  {{{"name", "http"}, {"containerPort", 8000}},
                   {{"name", "grpc"}, {"containerPort", 8001}},
                   {{"name", "metrics"}, {"containerPort", 8002}}}},
                 {"startupProbe", started},
                 {"readinessProbe", ready},
                 {"livenessProbe", live},
                 {"resources",
                  {{"requests", {{"cpu", resources.cpu}, {"memory", resources.memory}}}, {"limits", limits}}},
                 {"volumeMounts", {{{"name", "models"}, {"mountPath", kRepository}, {"readOnly", true}}}}};
  if (!pod.command.empty()) container["command"] = pod.command;
  // Weir's image is made for it. Other images may write, or want root.
  if (pod.server == kOwnServer)
    container["securityContext"] = {{"runAsNonRoot", true},
                                    {"runAsUser", 65532},
                                    {"readOnlyRootFilesystem", true},
                                    {"allowPrivilegeEscalation", false},
                                    {"capabilities", {{"drop", Json::array({"ALL"})}}},
                                    {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  return container;
}

}  // namespace

std::string KubernetesName(const std::string& server, const std::string& model) {
  std::string name;
  for (const char c : (server + "-" + model).substr(0, 50))
    name += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '-';
  while (name.ends_with('-')) name.pop_back();
  return name;
}

// Every document is JSON, which is YAML, so no word of a user can break out of its place.
std::string KubernetesText(const Pod& pod) {
  const std::string name = KubernetesName(pod.server, pod.model);
  const Json labels{{"app.kubernetes.io/name", pod.server}, {"app.kubernetes.io/instance", name}};
  const Json annotations{{"prometheus.io/scrape", "true"}, {"prometheus.io/port", "8002"}};
  const Json deployment{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata", {{"name", name}, {"labels", labels}}},
      {"spec",
       {{"replicas", pod.replicas},
        {"selector", {{"matchLabels", labels}}},
        {"template",
         {{"metadata", {{"labels", labels}, {"annotations", annotations}}},
          {"spec",
           {{"terminationGracePeriodSeconds", 60},
            {"containers", Json::array({ContainerJson(pod)})},
            {"volumes", {{{"name", "models"}, {"persistentVolumeClaim", {{"claimName", "models"}}}}}}}}}}}}};
  const Json service{{"apiVersion", "v1"},
                     {"kind", "Service"},
                     {"metadata", {{"name", name}, {"labels", labels}}},
                     {"spec",
                      {{"selector", labels},
                       {"ports",
                        {{{"name", "http"}, {"port", 8000}, {"targetPort", "http"}},
                         {{"name", "grpc"}, {"port", 8001}, {"targetPort", "grpc"}}}}}}};
  const Json metric{{"type", "Pods"},
                    {"pods",
                     {{"metric", {{"name", "nv_inference_pending_request_count"}}},
                      {"target", {{"type", "AverageValue"}, {"averageValue", "4"}}}}}};
  const Json scaler{{"apiVersion", "autoscaling/v2"},
                    {"kind", "HorizontalPodAutoscaler"},
                    {"metadata", {{"name", name}, {"labels", labels}}},
                    {"spec",
                     {{"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", name}}},
                      {"minReplicas", pod.replicas},
                      {"maxReplicas", 2 * pod.replicas},
                      {"metrics", Json::array({metric})}}}};
  return fmt::format(
      "# JSON is YAML. The claim \"models\" holds the repository. The scaler needs prometheus-adapter.\n"
      "{}\n---\n{}\n---\n{}\n",
      DumpJsonIndented(deployment), DumpJsonIndented(service), DumpJsonIndented(scaler));
}

std::string KserveText(const Pod& pod) {
  Json container = ContainerJson(pod);
  container["name"] = "kserve-container";
  container["ports"] = Json::array({{{"name", "http1"}, {"containerPort", 8000}, {"protocol", "TCP"}}});
  for (const char* key : {"startupProbe", "readinessProbe", "livenessProbe"})
    container[key]["httpGet"]["port"] = 8000;
  const Json service{
      {"apiVersion", "serving.kserve.io/v1beta1"},
      {"kind", "InferenceService"},
      {"metadata", {{"name", KubernetesName(pod.server, pod.model)}}},
      {"spec",
       {{"predictor",
         {{"minReplicas", pod.replicas},
          {"containers", Json::array({container})},
          {"volumes", {{{"name", "models"}, {"persistentVolumeClaim", {{"claimName", "models"}}}}}}}}}}};
  return DumpJsonIndented(service) + "\n";
}

}  // namespace weir::advise
