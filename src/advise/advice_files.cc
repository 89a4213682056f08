#include "advise/advice_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "advise/goal.h"
#include "base/count.h"
#include "launch/process/command.h"
#include "model/model.h"
#include "trial/repository.h"
#include "trial/setting.h"

namespace weir::advise {
namespace {

using results::AdviceResult;

// Returns the greatest value of a metric over a configuration's trials; nullopt where it was not measured.
std::optional<double> GreatestOf(const AdviceFilesInput& input, const char* metric) {
  std::optional<double> greatest;
  for (const study::PlayedTrials& one : input.played) {
    const Json* value = one.record.metrics.FindPath(metric);
    if (one.trial.configuration != input.best.configuration || value == nullptr || !value->is_number())
      continue;
    greatest = std::max(greatest.value_or(0), value->get<double>());
  }
  return greatest;
}

// A model that does not vary is no part of a configuration's factors.
std::string ModelOf(const study::StudyFile& file, const Json& factors) {
  if (const auto found = factors.find("model"); found != factors.end() && found->is_string())
    return found->get<std::string>();
  const auto fixed = std::ranges::find(file.fixed, "model", &study::FactorLevels::factor);
  return fixed != file.fixed.end() && fixed->levels[0].is_string() ? fixed->levels[0].get<std::string>() : "";
}

Result<std::string> ConfigOf(const AdviceFilesInput& input, trial::Setting& setting,
                             const std::string& model) {
  if (setting.architecture == trial::Architecture::kInProcess) return std::string();
  if (!setting.server) return trial::ServedConfig(setting, TRY(model::OpenModel(input.find(model), {})));
  if (setting.server->repository.empty()) return std::string();
  setting.server->repository = input.find(setting.server->repository);
  return trial::ServedConfig(setting, *setting.server);
}

std::string Row(const char* what, const AdviceResult::Expected& expected, double scale) {
  const auto end = [&](const std::optional<double>& value) { return value ? Short(scale * *value) : "-"; };
  return fmt::format("| {} | {} | {} | {} | {} |\n", what, Short(scale * expected.value), end(expected.low),
                     end(expected.high), expected.n);
}

// How a file is used. Empty for one that another file uses.
std::string UseOf(const std::string& name, const std::string& model) {
  if (name == "config.pbtxt")
    return fmt::format("put it into the model's folder: `models/{}/config.pbtxt`", model);
  if (name == "serve.flags") return "`weir serve $(cat serve.flags)`, with the model repository in /models";
  if (name == "server.sh") return "`sh server.sh` starts the server, with the model repository in /models";
  if (name == "run.flags") return "`weir run MODEL DATA $(cat run.flags)`";
  if (name == "Containerfile")
    return fmt::format("`podman build -t {} .`, beside the folder `models`", model);
  if (name == "kubernetes.yaml") return "`kubectl apply -f kubernetes.yaml`: Deployment, Service, scaler";
  if (name == "inference-service.yaml")
    return "`kubectl apply -f inference-service.yaml`, where KServe is there";
  if (name.ends_with(".service"))
    return fmt::format("`install -m 644 {0} /etc/systemd/system/ && systemctl enable --now {0}`", name);
  if (name.ends_with(".slurm")) return fmt::format("`sbatch {}`", name);
  return "";
}

// The command of a fresh check, against the server that the files start.
std::string CheckText(const AdviceResult& advice, const std::string& model) {
  const Json& factors = advice.best->configuration;
  const bool grpc = factors.value("protocol", std::string("http")) == "grpc";
  std::vector<std::string> words{
      "weir", "load", fmt::format("{}://127.0.0.1:{}/{}", grpc ? "grpc" : "http", grpc ? 8001 : 8000, model),
      "--batch-size", fmt::format("{}", factors.value("batch", 8))};
  const Json load = factors.value("load", Json());
  if (load.is_object())
    words.insert(words.end(), {"--request-rate-range", fmt::format("{}", load.value("rate_per_s", 1.0))});
  else
    words.insert(words.end(), {"--concurrency-range", fmt::format("{}", factors.value("in_flight", 1))});
  words.insert(words.end(), {"--request-count", "2000"});
  for (const std::string& text : advice.targets) {
    const auto target = ParseTarget(text);
    if (target && target->metric == kP99Metric)
      words.insert(words.end(),
                   {"--percentile", "99", "--latency-threshold", fmt::format("{}", target->limit)});
  }
  return launch::ToShell(words);
}

}  // namespace

Result<std::vector<AdviceFile>> MakeAdviceFiles(const AdviceFilesInput& input) {
  Json factors = input.design.configurations[input.best.configuration].factors;
  if (input.predicted) factors.erase("accelerator");
  trial::Setting setting = TRY(trial::ReadSetting(factors));
  return MakeFiles({.factors = factors,
                    .model = ModelName(input),
                    .config = TRY(ConfigOf(input, setting, ModelOf(input.file, factors))),
                    .image = input.image,
                    .replicas = input.best.instances.value_or(1),
                    .gpus = input.predicted ? 1 : 0,
                    .server_cores = GreatestOf(input, "/server_resources/app_cpu/max"),
                    .memory_bytes = GreatestOf(input, "/resources/container_memory_bytes/max")});
}

std::string ModelName(const AdviceFilesInput& input) {
  const Json& factors = input.design.configurations[input.best.configuration].factors;
  const auto setting = trial::ReadSetting(factors);
  if (setting && setting->server && !setting->server->model.empty()) return setting->server->model;
  const std::filesystem::path path(ModelOf(input.file, factors));
  return path.extension() == ".onnx" ? path.stem().string() : path.filename().string();
}

std::string AdviceReadme(const AdviceResult& advice, const std::string& model,
                         const std::vector<AdviceFile>& files) {
  const AdviceResult::Best& best = *advice.best;
  std::string text = fmt::format("# {}\n\n", best.label);
  for (const std::string& target : advice.targets) text += fmt::format("Target: {}. ", target);
  if (advice.rate_images_per_s) text += fmt::format("Load: {} images/s. ", Short(*advice.rate_images_per_s));
  text += fmt::format("Objective: {}.\n", advice.objective);
  text += "\n## Expected of one instance\n\n| figure | mean | low | high | trials |\n|---|---|---|---|---|\n";
  text += Row("images/s", best.expected.throughput, 1);
  if (best.expected.all.p99_ms) text += Row("p99 of the response time, ms", *best.expected.all.p99_ms, 1);
  if (best.expected.all.host_memory_bytes)
    text += Row("memory of the host in use, MB", *best.expected.all.host_memory_bytes, 1e-6);
  text +=
      "\nIntervals at 95 % over the trials. advice.json has the other configurations and the comparison.\n";
  if (best.cost.instances) text += fmt::format("The load takes {}", Count(*best.cost.instances, "instance"));
  if (best.cost.instances)
    text += best.cost.per_hour ? fmt::format(", {} an hour.\n", Short(*best.cost.per_hour)) : ".\n";
  text += "\n## The files\n\n| file | use |\n|---|---|\n";
  bool served = false;
  for (const AdviceFile& file : files) {
    served = served || file.name.ends_with(".service");
    text += fmt::format("| {} | {} |\n", file.name, UseOf(file.name, model));
  }
  if (served) text += fmt::format("\n## Check it\n\n```\n{}\n```\n", CheckText(advice, model));
  return text;
}

}  // namespace weir::advise
