// Any inference server, by its command line or its image: started with ports of its own and waited for.
#pragma once

#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/container/container.h"
#include "launch/process/launched.h"
#include "launch/ssh/ssh.h"

namespace weir::launch {

class NetworkLink;

struct Ports {
  int http = 0, grpc = 0, metrics = 0;  // 0: one that is free is found
};

inline constexpr char kReadyUrl[] = "http://{address}:{http_port}/v2/health/ready";

// Placeholders that command, environment, folder and URL may hold: {http_port}, {grpc_port}, {metrics_port},
// {address} (of the place where it runs) and {model_repository}. Braces around another small word are an
// error:
// {{word}} stands for {word}. All other braces stand for themselves.
struct ServerCommand {
  std::vector<std::string> command;      // the first is the program, looked for in PATH
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_folder;            // empty: this process's, or the one ssh begins in
  std::string model_repository;          // where the server runs
  Ports ports;                           // what the command cannot be told: the ports it has anyway
  std::string ready = kReadyUrl;         // asked until it says so; http:// or tcp://
  std::vector<int> cpus;                 // runs on these only; empty: on all. Not with a host
  const NetworkLink* link = nullptr;     // on its far side; must outlive the server
  std::optional<SshHost> host;           // there; not with a link
  int stop_signal = SIGTERM;
  Duration start_timeout = 60s;  // until it is ready
};

struct ServerImage {
  // Command and environment may hold placeholders; mounts are added to. The server shares this machine's
  // network, or the far side of a link: it must listen at the ports that its command is told.
  ContainerOptions container;
  std::string model_repository;  // a folder here, which the container has, and knows, as /models; empty: none
  std::string ready = kReadyUrl;
  Duration start_timeout = 60s;
};

// One that is ready. Ends with this object, and whenever this process ends.
struct StartedServer {
  std::unique_ptr<Launched> launched;
  std::string address;  // at which it is reached from here
  Ports ports;          // there
  Duration start{};     // from launch to ready
  std::string command;  // that starts such a server by hand, as one types it

  std::string http() const;  // "http://HOST:PORT"
  std::string grpc() const;  // "grpc://HOST:PORT"
};

// kInvalidArgument for a placeholder that is not known; kIo with the server's last words where it ended
// before it was ready, and its ending; kDeadline with the words, and with what the ready URL said last, where
// it was not ready in time.
LaunchResult<StartedServer> StartServer(const ServerCommand& server, const Clock& clock);
// `tool` is what FindContainerTool found for the image.
LaunchResult<StartedServer> StartServer(const ServerImage& server, const ContainerTool& tool,
                                        const Clock& clock);

// The values of the placeholders.
struct Places {
  Ports ports;
  std::string address, model_repository;
};
Result<std::string> FillIn(const std::string& text, const Places& places);
Result<std::vector<std::string>> FillIn(const std::vector<std::string>& texts, const Places& places);

}  // namespace weir::launch
