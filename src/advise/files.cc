#include "advise/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include "advise/kubernetes.h"
#include "launch/process/command.h"
#include "launch/server.h"
#include "trial/setting.h"

namespace weir::advise {
namespace {

using trial::Setting;

constexpr const char* kOwnImage = "localhost/weir";
constexpr launch::Ports kPorts{.http = 8000, .grpc = 8001, .metrics = 8002};

// How a server is started, by hand and in a container.
struct Start {
  std::string name;                     // "weir", or the other server's
  std::vector<std::string> host;        // the command on a host
  std::string image;                    // empty: no container is known
  std::vector<std::string> entrypoint;  // in the place of the image's; empty: the image's own
  std::vector<std::string> arguments;   // of the container
};

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

std::vector<std::string> ServeFlags(const Setting& setting) {
  std::vector<std::string> flags{"--model-repository", std::string(kRepository), "--address", "0.0.0.0"};
  const auto decoders = std::ranges::find(setting.run_flags, "--decode-threads");
  if (setting.payload == trial::Payload::kImage && decoders != setting.run_flags.end())
    flags.insert(flags.end(), decoders, decoders + 2);
  if (setting.shared_memory) flags.emplace_back("--allow-client-shm");
  return flags;
}

Start StartOfWeir(const FilesInput& input, const Setting& setting) {
  Start start{.name = "weir",
              .host = {"/usr/bin/weir", "serve"},
              .image = input.image.empty() ? kOwnImage : input.image,
              .entrypoint = {},
              .arguments = ServeFlags(setting)};
  start.host.insert(start.host.end(), start.arguments.begin(), start.arguments.end());
  return start;
}

Result<Start> StartOf(const FilesInput& input, const trial::OtherServer& server) {
  if (!server.url.empty())
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("the server {} is running already: the study set nothing of it, so there is nothing to "
                    "write; give its command or its image",
                    server.name));
  const launch::Places places{
      .ports = kPorts, .address = "0.0.0.0", .model_repository = std::string(kRepository)};
  Start start{.name = server.name, .image = input.image.empty() ? server.image : input.image};
  if (server.image.empty()) {
    start.host = TRY(launch::FillIn(server.command, places));
    start.entrypoint = start.host;
  } else {
    start.arguments = TRY(launch::FillIn(server.arguments, places));
    start.host = {"podman", "run", "--rm", "--network=host", "-v", "models:/models:ro", start.image};
    start.host.insert(start.host.end(), start.arguments.begin(), start.arguments.end());
  }
  return start;
}

std::string ContainerText(const Start& start) {
  std::string text = fmt::format(
      "# The context is a folder with models/, the repository that holds the model and its config.pbtxt.\n"
      "FROM {}\nCOPY models {}\n",
      start.image, kRepository);
  if (!start.entrypoint.empty()) text += fmt::format("ENTRYPOINT {}\n", DumpJson(Json(start.entrypoint)));
  if (!start.arguments.empty()) text += fmt::format("CMD {}\n", DumpJson(Json(start.arguments)));
  return text;
}

// Returns the words as systemd reads them: in double quotes where they are not plain, % and $ doubled.
std::string UnitWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    std::string escaped;
    for (const char c : word) escaped += c == '%' || c == '$' ? std::string(2, c) : std::string(1, c);
    const bool plain = !word.empty() && std::ranges::none_of(word, [](unsigned char c) {
      return std::isspace(c) || c == '"' || c == '\'' || c == '\\' || c == ';' || c < ' ';
    });
    text += (text.empty() ? "" : " ") + (plain ? escaped : DumpJson(Json(escaped)));
  }
  return text;
}

std::string UnitText(const std::string& model, const Start& start) {
  return fmt::format(
      "[Unit]\nDescription={} serving {}\nAfter=network-online.target\nWants=network-online.target\n\n"
      "[Service]\nExecStart={}\nRestart=on-failure\nDynamicUser=yes\n"
      "ProtectSystem=strict\nNoNewPrivileges=yes\nLimitNOFILE=65536\nTimeoutStopSec=90\n\n"
      "[Install]\nWantedBy=multi-user.target\n",
      start.name, model, UnitWords(start.host));
}

// Weir's tasks may share a node: each has ports of its own. Another server's are where its command says.
std::string SlurmText(const FilesInput& input, const Start& start) {
  const auto cores = static_cast<int64_t>(std::ceil(std::max(1.0, input.server_cores.value_or(1))));
  const double mib = std::max(64.0, input.memory_bytes.value_or(1 << 30) / (1 << 20));
  std::string text = fmt::format(
      "#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --ntasks={}\n#SBATCH --cpus-per-task={}\n"
      "#SBATCH --mem-per-cpu={}M\n",
      KubernetesName(start.name, input.model), input.replicas, cores,
      static_cast<int64_t>(std::ceil(mib * 1.5 / double(cores))));
  if (input.gpus > 0) text += fmt::format("#SBATCH --gpus-per-task={}\n", input.gpus);
  if (start.name != "weir")
    return text + "#SBATCH --ntasks-per-node=1\nset -euo pipefail\nsrun " + launch::ToShell(start.host) +
           "\n";
  return text +
         fmt::format(
             "set -euo pipefail\n"
             "# One server a task, each on a node of its own or on ports of its own.\n"
             "srun bash -c 'exec \"${{WEIR:-weir}}\" serve {} --http-port $((8000 + 10 * SLURM_LOCALID)) "
             "--grpc-port $((8001 + 10 * SLURM_LOCALID)) --metrics-port $((8002 + 10 * "
             "SLURM_LOCALID))'\n",
             fmt::join(start.arguments, " "));
}

AdviceFile RunFlags(const Setting& setting) {
  std::vector<std::string> flags{"--mode", std::string(ToString(setting.mode)), "--batch",
                                 fmt::format("{}", setting.batch)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) flags.insert(flags.end(), {flag, value});
  };
  const auto number = [](int64_t value) { return value > 0 ? fmt::format("{}", value) : std::string(); };
  if (setting.mode == trial::Mode::kAsync) add("--in-flight", number(setting.in_flight.value_or(0)));
  add("--engine", setting.engine);
  if (!setting.is_emulated()) {
    add("--precision", std::string(ToString(setting.precision)));
    add("--threads", number(setting.threads));
    add("--streams", number(setting.streams));
  }
  flags.insert(flags.end(), setting.run_flags.begin(), setting.run_flags.end());
  return {.name = "run.flags", .contents = launch::ToShell(flags) + "\n"};
}

}  // namespace

Result<std::vector<AdviceFile>> MakeFiles(const FilesInput& input) {
  TRY_STATUS(CheckName(input.model));
  const Setting setting = TRY(trial::ReadSetting(input.factors));
  if (setting.architecture == trial::Architecture::kInProcess)
    return std::vector<AdviceFile>{RunFlags(setting)};
  const Start start = setting.server ? TRY(StartOf(input, *setting.server)) : StartOfWeir(input, setting);
  TRY_STATUS(CheckName(start.name));
  std::vector<AdviceFile> files;
  if (!input.config.empty()) files.push_back({.name = "config.pbtxt", .contents = input.config});
  if (setting.server)
    files.push_back(
        {.name = "server.sh", .contents = "#!/bin/sh\nexec " + launch::ToShell(start.host) + "\n"});
  else
    files.push_back({.name = "serve.flags", .contents = launch::ToShell(start.arguments) + "\n"});
  if (!start.image.empty()) {
    const Pod pod{.server = start.name,
                  .model = input.model,
                  .image = start.image,
                  .command = start.entrypoint,
                  .arguments = start.arguments,
                  .replicas = input.replicas,
                  .gpus = input.gpus,
                  .server_cores = input.server_cores,
                  .memory_bytes = input.memory_bytes};
    files.push_back({.name = "Containerfile", .contents = ContainerText(start)});
    files.push_back({.name = "kubernetes.yaml", .contents = KubernetesText(pod)});
    files.push_back({.name = "inference-service.yaml", .contents = KserveText(pod)});
  }
  files.push_back({.name = start.name + ".service", .contents = UnitText(input.model, start)});
  files.push_back({.name = start.name + ".slurm", .contents = SlurmText(input, start)});
  return files;
}

}  // namespace weir::advise
