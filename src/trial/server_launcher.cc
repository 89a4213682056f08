#include "trial/server_launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/thread.h"
#include "trial/commands.h"
#include "trial/repository.h"

namespace weir::trial {
namespace {

constexpr int kNoSuchProgram = 127;  // as a shell's exit status

std::optional<launch::BalancerKind> KindOf(Balancer balancer) {
  switch (balancer) {
    case Balancer::kHaproxy:
      return launch::BalancerKind::kHaproxy;
    case Balancer::kNginx:
      return launch::BalancerKind::kNginx;
    case Balancer::kEnvoy:
      return launch::BalancerKind::kEnvoy;
    case Balancer::kNone:
    case Balancer::kRoundRobin:
      return std::nullopt;
  }
  return std::nullopt;
}

// "HOST:PORT" of a server, by its protocol.
std::string AddressOf(const launch::StartedServer& server, Protocol protocol) {
  const std::string url = protocol == Protocol::kHttp ? server.http() : server.grpc();
  return url.substr(url.find("://") + 3);
}

}  // namespace

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
  if (const auto kind = KindOf(setting.balancer)) {
    if (options_.host)
      return Fail(ErrorCode::kUnsupported, "a balancer on another host is not started here: give its url");
    TRY(launch::FindBalancer(*kind));
  }
  return {};
}

Result<launch::StartedServer> ServerLauncher::StartContainer(const Setting& setting,
                                                             launch::ServerImage image) {
  launch::ContainerTool tool = TRY(ToolFor(image.container.image));
  // Regions are this user's, and for nobody else to open.
  if (setting.shared_memory)
    tool.run_options.insert(tool.run_options.end(),
                            {"--ipc=host", fmt::format("--user={}:{}", getuid(), getgid())});
  // The device by CDI, and the engine for it, which no image has.
  if (setting.device.starts_with("cuda")) {
    tool.run_options.emplace_back("--device=nvidia.com/gpu=all");
    if (const auto folder = infer::FindCudaFolder())
      tool.run_options.push_back(fmt::format("--volume={}:/usr/lib/weir/cuda:ro", *folder));
  }
  image.container.cpu_list = setting.server_cpus;
  image.start_timeout = options_.start_timeout;
  return TRY(launch::StartServer(image, tool, clock_));
}

Result<launch::StartedServer> ServerLauncher::StartOwn(const Setting& setting, const model::Model& model,
                                                       launch::NetworkLink* link) {
  const std::string repository = TRY(MakeRepository(options_.folder, setting, model));
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
  std::string repository;
  if (!other.repository.empty()) repository = TRY(MakeRepository(options_.folder, setting, other));
  if (!other.image.empty()) {
    if (setting.architecture == Architecture::kDistributed)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format(
              "server {}: a container on the second node is not to be had; give its command, or its url",
              other.name));
    return StartContainer(setting, {.container = {.image = other.image, .command = other.arguments},
                                    .model_repository = repository,
                                    .ready = other.ready});
  }
  const bool is_away = setting.architecture == Architecture::kDistributed && options_.host;
  if (is_away && !repository.empty()) {
    const std::string name = std::filesystem::path(repository).filename().string();
    TRY_STATUS(launch::CopyOverSsh(*options_.host, {.from = repository, .to_folder = ".cache/weir"}, clock_));
    repository = ".cache/weir/" + name;
  }
  return TRY(launch::StartServer({.command = other.command,
                                  .model_repository = repository,
                                  .ready = other.ready,
                                  .cpus = setting.server_cpus,
                                  .link = link,
                                  .host = is_away ? options_.host : std::nullopt,
                                  .start_timeout = 3 * options_.start_timeout},
                                 clock_));
}

std::vector<int> RunningServer::pids() const {
  std::vector<int> pids;
  if (!is_watched || !started) return pids;
  pids.push_back(started->launched->pid());
  for (const launch::StartedServer& other : others) pids.push_back(other.launched->pid());
  return pids;
}

std::vector<std::string> RunningServer::urls() const {
  std::vector<std::string> urls;
  if (others.empty() && !balancer) return urls;
  urls.push_back(started->http());
  for (const launch::StartedServer& other : others) urls.push_back(other.http());
  return urls;
}

std::string RunningServer::Command() const {
  std::string command = started ? started->command : "";
  for (const launch::StartedServer& other : others) command += "\n" + other.command;
  if (balancer) command += "\n" + balancer->command;
  return command;
}

// The servers beside the first, and what stands in front of them.
Status ServerLauncher::StartOthers(const Setting& setting, const model::Model& model,
                                   RunningServer& running) {
  for (int i = 1; i < setting.servers; ++i)
    running.others.push_back(TRY(StartOwn(setting, model, running.link)));
  const auto kind = KindOf(setting.balancer);
  if (!kind) return {};
  launch::BalancerOptions options{.kind = *kind,
                                  .grpc = setting.protocol == Protocol::kGrpc,
                                  .backends = {AddressOf(*running.started, setting.protocol)},
                                  .folder = options_.folder + "/balancer",
                                  .link = running.link,
                                  .start_timeout = options_.start_timeout};
  for (const launch::StartedServer& other : running.others)
    options.backends.push_back(AddressOf(other, setting.protocol));
  running.balancer = TRY(launch::StartBalancer(options, clock_));
  return {};
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
      address = running.started ? TRY(launch::FillIn(said, {.ports = running.started->ports,
                                                            .address = running.started->address,
                                                            .model_repository = {}}))
                                : said;
    else if (runs_anyway)
      address = setting.server->url;
  } else {
    running.is_own = true;
    TRY_STATUS(StartOthers(setting, model, running));
    if (running.balancer) address = is_http ? running.balancer->http() : running.balancer->grpc();
    if (!running.balancer)
      for (const launch::StartedServer& other : running.others)
        address += "," + AddressOf(other, setting.protocol);
    if (running.others.empty())
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
