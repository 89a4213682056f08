#include "advise/advice_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <variant>

#include "advise/goal.h"
#include "base/count.h"
#include "launch/process/command.h"
#include "model/model.h"
#include "trial/commands.h"
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

constexpr int kUsualInFlight = 4;  // of weir run over a server, and of the response times beside it

// The load under which the figures were measured: in flight as there, one batch a request.
trial::Setting MeasuredLoad(trial::Setting setting) {
  const bool is_application = std::holds_alternative<trial::ApplicationLoad>(setting.load);
  if (!std::holds_alternative<trial::OpenLoad>(setting.load)) setting.load = trial::ClosedLoad{};
  if (is_application && setting.mode == trial::Mode::kAsync && !setting.in_flight)
    setting.in_flight = kUsualInFlight;
  return setting;
}

// Returns the command of a fresh check: the measured load on the server that the files start, or on the model
// in one process. Without the flags that a trial needs for itself.
std::vector<std::string> CheckCommand(const AdviceFilesInput& input, const trial::Setting& measured,
                                      const std::string& model, int64_t requests) {
  const trial::Setting setting = MeasuredLoad(measured);
  const bool served = setting.architecture != trial::Architecture::kInProcess;
  const bool grpc = setting.protocol == trial::Protocol::kGrpc;
  const std::string url =
      fmt::format("{}://127.0.0.1:{}/{}", grpc ? "grpc" : "http", grpc ? 8001 : 8000, model);
  trial::ClientPlaces places{.program = "weir",
                             .model = served ? url : input.find(ModelOf(input.file, input.factors())),
                             .data = {},
                             .expected = {},
                             .answers = {},
                             .streams = setting.streams,
                             .server_pids = {},
                             .metrics_url = {},
                             .client_hosts = {},
                             .shapes = {},
                             .seed = 2};
  if (setting.payload != trial::Payload::kTensor) places.data = {input.data};
  if (!setting.server) places.shapes = {input.file.shapes.begin(), input.file.shapes.end()};
  std::vector<std::string> words = trial::ClientArguments(setting, {.requests = requests}, places);
  for (const std::string_view flag : {"--json", "--seed"}) {
    const auto at = std::ranges::find(words, flag);
    if (at != words.end()) words.erase(at, at + 2);
  }
  return words;
}

// A command for each percentile that is a target, as one run judges one; then what is read off its output.
std::string CheckText(const AdviceFilesInput& input, const AdviceResult& advice, const std::string& model) {
  const auto setting = trial::ReadSetting(input.factors());
  if (!setting || std::holds_alternative<trial::StreamsLoad>(setting->load)) return "";
  constexpr int64_t kFewest = 2000;
  std::string commands, read;
  for (const std::string& text : advice.targets) {
    const auto target = ParseTarget(text);
    if (!target) continue;
    if (target->responses == 0) {
      read += fmt::format("- {}: {}\n", text,
                          target->metric == kMemoryMetric
                              ? "`weir monitor` of the server's process and of the command tells it"
                              : "the command prints its throughput, in rows a second");
      continue;
    }
    auto words = CheckCommand(input, *setting, model, std::max(kFewest, target->responses));
    words.insert(words.end(), {"--percentile", fmt::format("{}", target->percentile), "--latency-threshold",
                               fmt::format("{}", target->limit)});
    commands += launch::ToShell(words) + "\n";
  }
  if (commands.empty()) commands = launch::ToShell(CheckCommand(input, *setting, model, kFewest)) + "\n";
  return fmt::format("\n## Check it\n\nUnder the load of the trials:\n\n```\n{}```\n{}{}", commands,
                     read.empty() ? "" : "\n", read);
}

}  // namespace

Json AdviceFilesInput::factors() const {
  Json factors = design.configurations[best.configuration].factors;
  if (predicted) factors.erase("accelerator");
  return factors;
}

Result<std::vector<AdviceFile>> MakeAdviceFiles(const AdviceFilesInput& input) {
  const Json factors = input.factors();
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

std::string AdviceReadme(const AdviceFilesInput& input, const AdviceResult& advice,
                         const std::vector<AdviceFile>& files) {
  const AdviceResult::Best& best = *advice.best;
  const std::string model = ModelName(input);
  std::string text = fmt::format("# {}\n\n", best.label);
  for (const std::string& target : advice.targets) text += fmt::format("Target: {}. ", target);
  if (advice.rate_images_per_s) text += fmt::format("Load: {} images/s. ", Short(*advice.rate_images_per_s));
  text += fmt::format("Objective: {}.\n", advice.objective);
  text += "\n## Expected of one instance\n\n| figure | mean | low | high | trials |\n|---|---|---|---|---|\n";
  text += Row("images/s", best.expected.throughput, 1);
  if (best.expected.all.p99_ms) text += Row("p99 of the response time, ms", *best.expected.all.p99_ms, 1);
  if (best.expected.all.memory_bytes)
    text += Row("memory of client and server, MB", *best.expected.all.memory_bytes, 1e-6);
  text +=
      "\nIntervals at 95 % over the trials. advice.json has the other configurations and the comparison.\n";
  if (best.cost.instances) text += fmt::format("The load takes {}", Count(*best.cost.instances, "instance"));
  if (best.cost.instances)
    text += best.cost.per_hour ? fmt::format(", {} an hour.\n", Short(*best.cost.per_hour)) : ".\n";
  text += "\n## The files\n\n| file | use |\n|---|---|\n";
  for (const AdviceFile& file : files)
    text += fmt::format("| {} | {} |\n", file.name, UseOf(file.name, model));
  return text + CheckText(input, advice, model);
}

}  // namespace weir::advise
