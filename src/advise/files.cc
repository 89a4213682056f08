#include "advise/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

namespace weir::advise {
namespace {

constexpr std::string_view kRepository = "/models";

// The levels that the files use; absent ones keep the program's default.
struct Levels {
  std::string engine, precision, architecture = "in-process", mode = "async", payload = "tensor";
  int64_t batch = 8, instances = 1, threads = 0, streams = 0, in_flight = 0, decode_threads = 0;
  std::optional<int64_t> max_batch, delay_us;  // of the server's batching
};

std::string WordAt(const Json& factors, const char* key, std::string otherwise) {
  const auto found = factors.find(key);
  return found != factors.end() && found->is_string() ? found->get<std::string>() : std::move(otherwise);
}

int64_t NumberAt(const Json& factors, const char* key, int64_t otherwise) {
  const auto found = factors.find(key);
  return found != factors.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

Levels ReadLevels(const Json& factors) {
  Levels levels{.engine = WordAt(factors, "engine", ""),
                .precision = WordAt(factors, "precision", ""),
                .architecture = WordAt(factors, "architecture", "in-process"),
                .mode = WordAt(factors, "mode", "async"),
                .payload = WordAt(factors, "payload", "tensor"),
                .batch = NumberAt(factors, "batch", 8),
                .instances = NumberAt(factors, "instances", 1),
                .threads = NumberAt(factors, "threads", 0),
                .streams = NumberAt(factors, "streams", 0),
                .in_flight = NumberAt(factors, "in_flight", 0),
                .decode_threads = NumberAt(factors, "decode_threads", 0)};
  if (const std::string accelerator = WordAt(factors, "accelerator", ""); !accelerator.empty())
    levels.engine = accelerator;
  const auto batching = factors.find("server_batching");
  if (batching != factors.end() && batching->is_object()) {
    levels.max_batch = NumberAt(*batching, "max_batch", 0);
    levels.delay_us = NumberAt(*batching, "delay_us", 0);
  }
  return levels;
}

Status CheckName(const std::string& model) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  if (!model.empty() && std::isalnum(static_cast<unsigned char>(model[0])) &&
      std::ranges::all_of(model, is_plain))
    return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("model \"{}\": the files want a name of letters, digits, -, _ and .: rename its folder",
                  EscapeForTerminal(model)));
}

// Returns a name as Kubernetes takes it (RFC 1123 label): at most 50 characters, lower case.
std::string KubernetesName(const std::string& model) {
  std::string name = "weir-";
  for (const char c : model.substr(0, 45))
    name += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '-';
  while (name.ends_with('-')) name.pop_back();
  return name;
}

// Returns a value as a protobuf or YAML string in double quotes.
std::string Quoted(std::string_view text) { return DumpJson(Json(text)); }

std::string ConfigText(const std::string& model, const Levels& levels) {
  std::string text = fmt::format("name: {}\n", Quoted(model));
  if (levels.max_batch) {
    text += fmt::format("max_batch_size: {}\n", std::max<int64_t>(levels.batch, *levels.max_batch));
    if (*levels.max_batch > 0)
      text += fmt::format("dynamic_batching {{ max_queue_delay_microseconds: {} }}\n", *levels.delay_us);
  }
  const int64_t streams = std::max<int64_t>(1, levels.streams) * levels.instances;
  if (levels.streams > 0 || levels.instances > 1)
    text += fmt::format("instance_group {{ count: {} }}\n", streams);
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty())
      text += fmt::format("parameters {{ key: \"{}\" value: {{ string_value: {} }} }}\n", key, Quoted(value));
  };
  add("engine", levels.engine);
  add("precision", levels.precision);
  if (levels.threads > 0) add("threads", fmt::format("{}", levels.threads));
  return text;
}

std::vector<std::string> ServeFlags(const Levels& levels) {
  std::vector<std::string> flags{"--model-repository", std::string(kRepository), "--address", "0.0.0.0"};
  if (levels.decode_threads > 0 && levels.payload == "image") {
    flags.emplace_back("--decode-threads");
    flags.push_back(fmt::format("{}", levels.decode_threads));
  }
  if (levels.payload == "shared-memory") flags.emplace_back("--allow-client-shm");
  return flags;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string ContainerText(const std::string& image, const std::vector<std::string>& flags) {
  return fmt::format(
      "# The context is a folder with models/, the repository that holds the model and its config.pbtxt.\n"
      "FROM {}\nCOPY models {}\nCMD {}\n",
      image, kRepository, DumpJson(Json(flags)));
}

// Resources of a pod. Requests are the maximum that one instance used; the memory limit is 1.5 times that.
struct PodResources {
  std::string cpu, memory, memory_limit;
};

PodResources ResourcesOf(const FilesInput& input) {
  const double cores = std::max(0.1, input.server_cores.value_or(1));
  const double mib = std::max(64.0, input.memory_bytes.value_or(1 << 30) / (1 << 20));
  return {.cpu = fmt::format("{}m", static_cast<int64_t>(std::ceil(cores * 1000))),
          .memory = fmt::format("{}Mi", static_cast<int64_t>(std::ceil(mib))),
          .memory_limit = fmt::format("{}Mi", static_cast<int64_t>(std::ceil(mib * 1.5)))};
}

Json ContainerJson(const FilesInput& input, const std::vector<std::string>& flags) {
  const PodResources resources = ResourcesOf(input);
  const auto probe = [](const char* path) { return Json{{"httpGet", {{"path", path}, {"port", "http"}}}}; };
  Json ready = probe("/v2/health/ready"), live = probe("/v2/health/live"),
       started = probe("/v2/health/ready");
  ready["periodSeconds"] = 5;
  live["periodSeconds"] = 10;
  started["failureThreshold"] = 60;
  started["periodSeconds"] = 5;
  return {{"name", "weir"},
          {"image", input.image},
          {"args", flags},
          {"ports",
           {{{"name", "http"}, {"containerPort", 8000}},
            {{"name", "grpc"}, {"containerPort", 8001}},
            {{"name", "metrics"}, {"containerPort", 8002}}}},
          {"startupProbe", started},
          {"readinessProbe", ready},
          {"livenessProbe", live},
          {"resources",
           {{"requests", {{"cpu", resources.cpu}, {"memory", resources.memory}}},
            {"limits", {{"memory", resources.memory_limit}}}}},
          {"volumeMounts", {{{"name", "models"}, {"mountPath", kRepository}, {"readOnly", true}}}}};
}

// Every document is JSON, which is YAML, so no word of a user can break out of its place.
std::string KubernetesText(const FilesInput& input, const std::vector<std::string>& flags) {
  const std::string name = KubernetesName(input.model);
  const Json labels{{"app.kubernetes.io/name", "weir"}, {"app.kubernetes.io/instance", name}};
  const Json annotations{{"prometheus.io/scrape", "true"}, {"prometheus.io/port", "8002"}};
  const Json deployment{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata", {{"name", name}, {"labels", labels}}},
      {"spec",
       {{"replicas", input.replicas},
        {"selector", {{"matchLabels", labels}}},
        {"template",
         {{"metadata", {{"labels", labels}, {"annotations", annotations}}},
          {"spec",
           {{"terminationGracePeriodSeconds", 60},
            {"securityContext", {{"runAsNonRoot", true}}},
            {"containers", Json::array({ContainerJson(input, flags)})},
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
                      {"minReplicas", input.replicas},
                      {"maxReplicas", 2 * input.replicas},
                      {"metrics", Json::array({metric})}}}};
  return fmt::format(
      "# JSON is YAML. The claim \"models\" holds the repository. The scaler needs prometheus-adapter.\n"
      "{}\n---\n{}\n---\n{}\n",
      DumpJsonIndented(deployment), DumpJsonIndented(service), DumpJsonIndented(scaler));
}

std::string KserveText(const FilesInput& input, const std::vector<std::string>& flags) {
  Json container = ContainerJson(input, flags);
  container["name"] = "kserve-container";
  container["ports"] = Json::array({{{"name", "http1"}, {"containerPort", 8000}, {"protocol", "TCP"}}});
  for (const char* key : {"startupProbe", "readinessProbe", "livenessProbe"})
    container[key]["httpGet"]["port"] = 8000;
  const Json service{
      {"apiVersion", "serving.kserve.io/v1beta1"},
      {"kind", "InferenceService"},
      {"metadata", {{"name", KubernetesName(input.model)}}},
      {"spec",
       {{"predictor",
         {{"minReplicas", input.replicas},
          {"containers", Json::array({container})},
          {"volumes", {{{"name", "models"}, {"persistentVolumeClaim", {{"claimName", "models"}}}}}}}}}}};
  return DumpJsonIndented(service) + "\n";
}

std::string UnitText(const std::string& model, const std::vector<std::string>& flags) {
  return fmt::format(
      "[Unit]\nDescription=weir serving {}\nAfter=network-online.target\nWants=network-online.target\n\n"
      "[Service]\nExecStart=/usr/bin/weir serve {}\nRestart=on-failure\nDynamicUser=yes\n"
      "ProtectSystem=strict\nNoNewPrivileges=yes\nLimitNOFILE=65536\nTimeoutStopSec=90\n\n"
      "[Install]\nWantedBy=multi-user.target\n",
      model, Joined(flags));
}

std::string SlurmText(const FilesInput& input, const std::vector<std::string>& flags) {
  const auto cores = static_cast<int64_t>(std::ceil(std::max(1.0, input.server_cores.value_or(1))));
  return fmt::format(
      "#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --ntasks={}\n#SBATCH --cpus-per-task={}\n"
      "#SBATCH --mem-per-cpu={}M\nset -euo pipefail\n"
      "# One server a task, each on a node of its own or on ports of its own.\n"
      "srun bash -c 'exec \"${{WEIR:-weir}}\" serve {} --http-port $((8000 + 10 * SLURM_LOCALID)) "
      "--grpc-port $((8001 + 10 * SLURM_LOCALID)) --metrics-port $((8002 + 10 * SLURM_LOCALID))'\n",
      KubernetesName(input.model), input.replicas, cores,
      static_cast<int64_t>(
          std::ceil(std::max(64.0, input.memory_bytes.value_or(1 << 30) / (1 << 20)) * 1.5 / double(cores))),
      Joined(flags));
}

AdviceFile RunFlags(const Levels& levels) {
  std::vector<std::string> flags{"--mode", levels.mode, "--batch", fmt::format("{}", levels.batch)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    flags.emplace_back(flag);
    flags.push_back(value);
  };
  const auto number = [](int64_t value) { return value > 0 ? fmt::format("{}", value) : std::string(); };
  if (levels.mode == "async") add("--in-flight", number(levels.in_flight));
  add("--engine", levels.engine);
  if (!levels.engine.starts_with("emulated")) {
    add("--precision", levels.precision);
    add("--threads", number(levels.threads));
  }
  add("--decode-threads", number(levels.decode_threads));
  return {.name = "run.flags", .contents = Joined(flags) + "\n"};
}

}  // namespace

Result<std::vector<AdviceFile>> MakeFiles(const FilesInput& input) {
  TRY_STATUS(CheckName(input.model));
  const auto server = input.factors.find("server");
  if (server != input.factors.end() && *server != "weir")
    return Fail(ErrorCode::kUnsupported, "files are written for weir's own server only");
  const Levels levels = ReadLevels(input.factors);
  if (levels.architecture == "in-process") return std::vector<AdviceFile>{RunFlags(levels)};
  const std::vector<std::string> flags = ServeFlags(levels);
  return std::vector<AdviceFile>{{.name = "config.pbtxt", .contents = ConfigText(input.model, levels)},
                                 {.name = "serve.flags", .contents = Joined(flags) + "\n"},
                                 {.name = "Containerfile", .contents = ContainerText(input.image, flags)},
                                 {.name = "kubernetes.yaml", .contents = KubernetesText(input, flags)},
                                 {.name = "inference-service.yaml", .contents = KserveText(input, flags)},
                                 {.name = "weir.service", .contents = UnitText(input.model, flags)},
                                 {.name = "weir.slurm", .contents = SlurmText(input, flags)}};
}

}  // namespace weir::advise
