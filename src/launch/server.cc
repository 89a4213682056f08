#include "launch/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "base/json.h"
#include "launch/network/network_link.h"
#include "launch/process/command.h"
#include "launch/process/free_port.h"
#include "launch/process/orphans.h"
#include "launch/process/ready.h"
#include "launch/process/supervisor.h"
#include "launch/ssh/ssh_server.h"

namespace weir::launch {
namespace {

constexpr Duration kOneAnswer = 500ms;
constexpr char kModelsInside[] = "/models";

std::optional<std::string> ValueOf(std::string_view word, const Places& places) {
  if (word == "http_port") return fmt::format("{}", places.ports.http);
  if (word == "grpc_port") return fmt::format("{}", places.ports.grpc);
  if (word == "metrics_port") return fmt::format("{}", places.ports.metrics);
  if (word == "address") return places.address;
  if (word == "model_repository") return places.model_repository;
  return std::nullopt;
}

// The small word at the front of `text` that `end` closes; empty where there is none.
std::string_view WordBefore(std::string_view text, std::string_view end) {
  const size_t size = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (size == 0 || size == std::string_view::npos || !text.substr(size).starts_with(end)) return {};
  return text.substr(0, size);
}

// Ports that are asked for stay; for the others, three that are free.
Ports Chosen(const Ports& wanted, const std::vector<int>& free) {
  const auto choose = [](int asked, int found) { return asked != 0 ? asked : found; };
  return {.http = choose(wanted.http, free[0]),
          .grpc = choose(wanted.grpc, free[1]),
          .metrics = choose(wanted.metrics, free[2])};
}

LaunchResult<StartedServer> WaitForServer(std::unique_ptr<Launched> launched, const std::string& ready,
                                          const Places& places, Instant begin, Duration timeout,
                                          const Clock& clock) {
  const std::function<Status()> ask = [&] { return AskReady(ready, kOneAnswer); };
  TRY_STATUS(WaitUntilReady(*launched, ask, begin + timeout, clock));
  return StartedServer{.launched = std::move(launched),
                       .address = places.address,
                       .ports = places.ports,
                       .start = clock.Now() - begin,
                       .command = {}};
}

// Returns the command of a server as one types it on this machine.
std::string ByHand(const ServerCommand& server, const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  if (!server.environment.empty()) {
    words.insert(words.begin(), server.environment.begin(), server.environment.end());
    words.insert(words.begin(), "env");
  }
  if (!server.cpus.empty())
    words.insert(words.begin(), {"taskset", "-c", fmt::format("{}", fmt::join(server.cpus, ","))});
  if (!server.host) return ToShell(words);
  return ToShell({"ssh", server.host->destination, ToShell(words)});
}

std::string ByHand(const ContainerTool& tool, const ContainerOptions& container) {
  std::vector<std::string> words = RunArguments(tool, container, "weir-server");
  std::erase_if(words, [](const std::string& word) { return word.starts_with("--label="); });
  return ToShell(words);
}

// The URL with its placeholders filled in, known to be one.
Result<std::string> ReadyUrl(const std::string& text, const Places& places) {
  std::string url = TRY_CONTEXT(FillIn(text, places), "the ready URL");
  const bool tcp = url.starts_with("tcp://");
  TRY_STATUS(ParseHttpUrl(tcp ? "http://" + url.substr(6) : url));
  return url;
}

Result<Places> FindPlaces(const ServerCommand& server, const Clock& clock) {
  if (server.host && server.link != nullptr)
    return Fail(ErrorCode::kInvalidArgument, "a server runs on another host or behind a link, not both");
  Places places{.address = "127.0.0.1", .model_repository = server.model_repository};
  if (server.link != nullptr) places.address = server.link->far_address();
  if (server.host) places.address = TRY(AddressThere(*server.host, clock));
  const std::vector<int> free = server.host ? TRY(FreePortsOn(*server.host, 3, clock)) : TRY(FreePorts(3));
  places.ports = Chosen(server.ports, free);
  return places;
}

Result<std::unique_ptr<Launched>> Launch(const ServerCommand& server, const Places& places,
                                         const Clock& clock) {
  Kept kept{.command = TRY_CONTEXT(FillIn(server.command, places), "the server's command"),
            .environment = TRY_CONTEXT(FillIn(server.environment, places), "the server's environment"),
            .working_folder = TRY(FillIn(server.working_folder, places)),
            .mark = MakeMark(clock.Now())};
  if (kept.command.empty() || kept.command[0].empty())
    return Fail(ErrorCode::kInvalidArgument, "the server's command is empty");
  if (server.host) {
    if (!server.cpus.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("CPUs on {}: begin the server's command with taskset -c instead",
                              server.host->destination));
    return StartOverSsh(*server.host, std::move(kept), server.stop_signal, clock);
  }
  return TRY(
      KeptProgram::Start({.name = kept.command[0],
                          .address = places.address,
                          .mark = kept.mark,
                          .stop_signal = server.stop_signal},
                         {.arguments = KeeperArguments(kept),
                          .environment = {OwnerVariable()},
                          .cpus = server.cpus,
                          .network_namespace = server.link != nullptr ? server.link->far_namespace() : -1},
                         clock));
}

Result<Places> FindPlaces(const ServerImage& server) {
  const NetworkLink* link = server.container.link;
  return Places{.ports = Chosen({}, TRY(FreePorts(3))),
                .address = link != nullptr ? link->far_address() : "127.0.0.1",
                .model_repository = server.model_repository.empty() ? "" : kModelsInside};
}

}  // namespace

std::string StartedServer::http() const { return fmt::format("http://{}:{}", address, ports.http); }
std::string StartedServer::grpc() const { return fmt::format("grpc://{}:{}", address, ports.grpc); }

Result<std::string> FillIn(const std::string& text, const Places& places) {
  std::string filled;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view quoted = rest.starts_with("{{") ? WordBefore(rest.substr(2), "}}") : "";
    const std::string_view word = rest.starts_with('{') ? WordBefore(rest.substr(1), "}") : "";
    if (!quoted.empty()) {
      filled += fmt::format("{{{}}}", quoted);
      rest.remove_prefix(quoted.size() + 4);
    } else if (!word.empty()) {
      const auto value = ValueOf(word, places);
      if (!value) {
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}: {{{}}} stands for nothing; known are {{http_port}}, {{grpc_port}}, "
                                "{{metrics_port}}, {{address}} and {{model_repository}}, and {{{{{}}}}} is "
                                "written for the braces themselves",
                                EscapeBytes(text), word, word));
      }
      filled += *value;
      rest.remove_prefix(word.size() + 2);
    } else {
      filled += rest.front();
      rest.remove_prefix(1);
    }
  }
  return filled;
}

Result<std::vector<std::string>> FillIn(const std::vector<std::string>& texts, const Places& places) {
  std::vector<std::string> filled;
  for (const std::string& text : texts) filled.push_back(TRY(FillIn(text, places)));
  return filled;
}

LaunchResult<StartedServer> StartServer(const ServerCommand& server, const Clock& clock) {
  const Places places = TRY(FindPlaces(server, clock));
  const std::string ready = TRY(ReadyUrl(server.ready, places));
  const Instant begin = clock.Now();
  auto launched = TRY(Launch(server, places, clock));
  auto started = TRY(WaitForServer(std::move(launched), ready, places, begin, server.start_timeout, clock));
  started.command = ByHand(server, TRY(FillIn(server.command, places)));
  return started;
}

LaunchResult<StartedServer> StartServer(const ServerImage& server, const ContainerTool& tool,
                                        const Clock& clock) {
  const Places places = TRY(FindPlaces(server));
  const std::string ready = TRY(ReadyUrl(server.ready, places));
  ContainerOptions container = server.container;
  container.command = TRY_CONTEXT(FillIn(container.command, places), "the container's command");
  container.environment = TRY_CONTEXT(FillIn(container.environment, places), "the container's environment");
  if (!server.model_repository.empty())
    container.mounts.push_back({.from = server.model_repository, .to = kModelsInside});
  const Instant begin = clock.Now();
  auto launched = TRY(StartContainer(tool, container, clock));
  auto started = TRY(WaitForServer(std::move(launched), ready, places, begin, server.start_timeout, clock));
  started.command = ByHand(tool, container);
  return started;
}

}  // namespace weir::launch
