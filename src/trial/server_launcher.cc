#include "trial/server_launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/thread.h"
#include "model/config_change.h"
#include "trial/commands.h"

namespace weir::trial {
namespace {

constexpr int kNoSuchProgram = 127;  // as a shell's exit status

// A copy that shares the bytes where the file system can.
Status LinkTree(const std::string& from, const std::string& to) {
  std::error_code error;
  TRY_STATUS(MakeFolders(to));
  for (const auto& entry : std::filesystem::directory_iterator(from, error)) {
    const std::string name = entry.path().filename().string(), target = to + "/" + name;
    if (entry.is_directory(error)) {
      TRY_STATUS(LinkTree(entry.path().string(), target));
      continue;
    }
    const std::string source = std::filesystem::canonical(entry.path(), error).string();
    if (!error) std::filesystem::create_hard_link(source, target, error);
    if (error) std::filesystem::copy_file(source, target, error);
    if (error) return FailErrno(target, error.value());
  }
  return error ? Status(FailErrno(from, error.value())) : Status{};
}

// The model's files as a repository has them, without a configuration.
Status PutFiles(const model::Model& model, const std::string& folder) {
  if (!model.folder.empty()) {
    TRY_STATUS(LinkTree(model.folder, folder));
    std::error_code error;
    std::filesystem::remove(folder + "/config.pbtxt", error);
    return {};
  }
  TRY_STATUS(MakeFolders(folder + "/1"));
  std::error_code error;
  std::filesystem::create_hard_link(model.path, folder + "/1/model.onnx", error);
  if (error) std::filesystem::copy_file(model.path, folder + "/1/model.onnx", error);
  if (error) return FailErrno(folder, error.value());
  if (!model.recipe) return {};
  return WriteFileWhole(folder + "/recipe.yaml", dataset::FormatRecipe(*model.recipe));
}

model::ConfigChange ChangeFor(const Setting& setting, const model::Model& model) {
  model::ConfigChange change;
  if (!setting.engine.empty()) change.parameters["engine"] = setting.engine;
  if (!setting.is_emulated()) {
    change.parameters["precision"] = setting.precision;
    if (setting.threads > 0) change.parameters["threads"] = fmt::format("{}", setting.threads);
    // One a thread where nobody asks for a number: the server may have fewer CPUs than this process.
    const bool asked =
        setting.streams > 0 || setting.instances > 1 || model::SessionDefaults(model).streams > 0;
    change.parameters["streams"] = fmt::format("{}", asked ? StreamsOf(setting, model) : 0);
  }
  if (setting.server_batching) {
    change.dynamic_batching = {.on = setting.server_batching->max_batch > 0,
                               .max_queue_delay_us = setting.server_batching->delay_us};
    if (setting.server_batching->max_batch > 0) change.max_batch_size = setting.server_batching->max_batch;
  }
  if (model.serving_max_batch > 0 &&
      std::max(model.serving_max_batch, change.max_batch_size.value_or(0)) < setting.batch)
    change.max_batch_size = setting.batch;
  return change;
}

}  // namespace

int StreamsOf(const Setting& setting, const model::Model& model) {
  if (setting.is_emulated()) return 0;
  // Each instance has the streams: two factors, and neither hides the other.
  if (setting.streams > 0 || setting.instances > 1) return std::max(1, setting.streams) * setting.instances;
  const infer::SessionOptions options = model::SessionDefaults(model);
  if (options.streams > 0) return options.streams;
  const int threads = setting.threads > 0 ? setting.threads : options.threads;
  return threads > 0 ? std::min(threads, UsableCpus()) : UsableCpus();
}

Result<std::string> ServerLauncher::RepositoryOf(const Setting& setting, const model::Model& model) {
  const std::string config = model::ChangeConfig(model.config, ChangeFor(setting, model));
  std::string name = model.name;
  const std::string repository = fmt::format(
      "{}/{:016x}", options_.folder, Seed(1).Stream(name + "\n" + model.path + "\n" + config).value());
  std::error_code error;
  const std::string folder = repository + "/" + name;
  if (std::filesystem::exists(folder + "/config.pbtxt", error)) return repository;
  std::filesystem::remove_all(repository, error);
  TRY_STATUS(PutFiles(model, folder));
  TRY_STATUS(WriteFileWhole(folder + "/config.pbtxt", config));  // the last: with it the folder is whole
  return repository;
}

Result<launch::NetworkLink*> ServerLauncher::LinkOf(const Network& network) {
  const std::optional<double> mean = network.variable
                                         ? std::optional((network.variable->low + network.variable->high) / 2)
                                         : network.gbit_per_s;
  const std::string key =
      fmt::format("{} {}", mean ? fmt::format("{}", *mean) : "unshaped", network.delay.count());
  auto found = links_.find(key);
  if (found == links_.end())
    found =
        links_.emplace(key, launch::NetworkLink::Create({.gbit_per_s = mean, .delay = network.delay}, clock_))
            .first;
  if (!found->second) return std::unexpected(found->second.error());
  launch::NetworkLink* link = found->second->get();
  if (mean) TRY_STATUS(link->SetRate(*mean));
  return link;
}

Result<launch::ContainerTool> ServerLauncher::ToolFor(const std::string& image) {
  auto found = tools_.find(image);
  if (found == tools_.end()) found = tools_.emplace(image, launch::FindContainerTool(image, clock_)).first;
  if (found->second) return *found->second;
  Error error = found->second.error();
  error.code = ErrorCode::kUnsupported;  // a missing image too is for the user to bring
  return std::unexpected(std::move(error));
}

// The second node is one of this machine's.
bool ServerLauncher::NeedsLink(const Setting& setting) const {
  return setting.architecture == Architecture::kDistributed && !options_.host && !RunsAnyway(setting);
}

Status ServerLauncher::Check(const Setting& setting) {
  if (setting.architecture == Architecture::kInProcess || RunsAnyway(setting)) return {};
  if (NeedsLink(setting)) TRY(LinkOf(setting.network));
  const bool is_in_container = setting.architecture == Architecture::kMicroservice &&
                               (!setting.server || !setting.server->image.empty());
  if (is_in_container) TRY(ToolFor(setting.server ? setting.server->image : options_.image));
  return {};
}

Result<launch::StartedServer> ServerLauncher::StartContainer(const Setting& setting,
                                                             launch::ServerImage image) {
  launch::ContainerTool tool = TRY(ToolFor(image.container.image));
  // Regions are this user's, and for nobody else to open.
  if (setting.shared_memory)
    tool.run_options.insert(tool.run_options.end(),
                            {"--ipc=host", fmt::format("--user={}:{}", getuid(), getgid())});
  image.container.cpu_list = setting.server_cpus;
  image.start_timeout = options_.start_timeout;
  return TRY(launch::StartServer(image, tool, clock_));
}

Result<launch::StartedServer> ServerLauncher::StartOwn(const Setting& setting, const model::Model& model,
                                                       launch::NetworkLink* link) {
  const std::string repository = TRY(RepositoryOf(setting, model));
  std::vector<std::string> arguments = ServeArguments(setting);
  if (setting.architecture == Architecture::kMicroservice) {
    launch::ServerImage image{.container = {.image = options_.image, .command = std::move(arguments)},
                              .model_repository = repository};
    return StartContainer(setting, std::move(image));
  }
  launch::ServerCommand command{.model_repository = repository,
                                .cpus = setting.server_cpus,
                                .link = link,
                                .host = options_.host,
                                .start_timeout = options_.start_timeout};
  if (options_.host) {
    command.model_repository =
        fmt::format(".cache/weir/{}", std::filesystem::path(repository).filename().string());
    TRY_STATUS(launch::CopyOverSsh(*options_.host, {.from = repository, .to_folder = ".cache/weir"}, clock_));
  }
  arguments.insert(arguments.begin(), {options_.host ? "weir" : options_.program, "serve"});
  command.command = std::move(arguments);
  auto started = launch::StartServer(command, clock_);
  if (!started && options_.host && started.error().ending == launch::Ending{.exit_status = kNoSuchProgram})
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{0} has no weir in its PATH: install it there; \"ssh {0} weir --version\" must "
                            "answer",
                            options_.host->destination));
  return TRY(std::move(started));
}

Result<launch::StartedServer> ServerLauncher::StartOther(const Setting& setting, const OtherServer& other,
                                                         launch::NetworkLink* link) {
  if (!other.image.empty()) {
    if (setting.architecture == Architecture::kDistributed)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format(
              "server {}: a container on the second node is not to be had; give its command, or its url",
              other.name));
    return StartContainer(
        setting, {.container = {.image = other.image, .command = other.arguments}, .ready = other.ready});
  }
  return TRY(launch::StartServer(
      {.command = other.command,
       .ready = other.ready,
       .cpus = setting.server_cpus,
       .link = link,
       .host = setting.architecture == Architecture::kDistributed ? options_.host : std::nullopt,
       .start_timeout = 3 * options_.start_timeout},
      clock_));
}

Result<RunningServer> ServerLauncher::Start(const Setting& setting, const model::Model& model, Seed seed) {
  CHECK(setting.architecture != Architecture::kInProcess);
  RunningServer running;
  const bool runs_anyway = RunsAnyway(setting);
  if (NeedsLink(setting)) running.link = TRY(LinkOf(setting.network));
  if (!runs_anyway) {
    running.started = setting.server ? TRY(StartOther(setting, *setting.server, running.link))
                                     : TRY(StartOwn(setting, model, running.link));
    if (setting.architecture == Architecture::kDistributed) running.host = options_.host;
    running.is_watched = !running.host;
  }
  const bool is_http = setting.protocol == Protocol::kHttp;
  std::string address;
  if (running.started) address = is_http ? running.started->http() : running.started->grpc();
  if (setting.server) {
    const std::string& said = is_http ? setting.server->http : setting.server->grpc;
    if (!said.empty())
      address = said;
    else if (runs_anyway)
      address = setting.server->url;
  } else {
    running.is_own = true;
    running.metrics_url =
        fmt::format("http://{}:{}/metrics", running.started->address, running.started->ports.metrics);
  }
  running.model_url =
      address + "/" + (setting.server && !setting.server->model.empty() ? setting.server->model : model.name);
  if (running.link != nullptr && setting.network.variable) {
    const auto& variable = *setting.network.variable;
    const double mean = (variable.low + variable.high) / 2;
    auto schedule = TRY(launch::RateSchedule::Create({.mean_gbit_per_s = mean,
                                                      .lowest = variable.low / mean,
                                                      .highest = variable.high / mean,
                                                      .shortest = variable.every,
                                                      .longest = variable.every,
                                                      .seed = seed.Stream("link")}));
    launch::NetworkLink* link = running.link;
    running.rate = TRY(launch::VariableRate::Start([link](double rate) { return link->SetRate(rate); },
                                                   std::move(schedule), clock_.Now(), clock_));
  }
  return running;
}

}  // namespace weir::trial
