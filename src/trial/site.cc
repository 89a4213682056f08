#include "trial/site.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "launch/free_port.h"
#include "launch/process.h"
#include "launch/ready.h"

namespace weir::trial {
namespace {

constexpr Duration kOneAnswer = 500ms;

// Of this machine: a container shares its network. On the far side of a link they are free all the more.
Result<Site::Ports> FreePorts() {
  return Site::Ports{TRY(launch::FreePort()), TRY(launch::FreePort()), TRY(launch::FreePort())};
}

std::vector<std::string> ServeArguments(const std::string& repository, const std::string& address,
                                        const Site::Ports& ports) {
  return {"--model-repository", repository,
          "--address",          address,
          "--http-port",        fmt::format("{}", ports.http),
          "--grpc-port",        fmt::format("{}", ports.grpc),
          "--metrics-port",     fmt::format("{}", ports.metrics)};
}

}  // namespace

std::string ModelName(const std::string& model_folder) {
  return std::filesystem::path(model_folder).lexically_normal().filename().string();
}

std::string_view ToString(Architecture architecture) {
  switch (architecture) {
    case Architecture::kInProcess:
      return "in-process";
    case Architecture::kMicroservice:
      return "microservice";
    case Architecture::kDistributed:
      return "distributed";
  }
  return "";
}

Site::Site(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      containers_(launch::FindContainerTool(options_.image, clock)),
      link_(launch::NetworkLink::Create({.gbit_per_s = options_.gbit_per_s}, clock)) {}

std::optional<Error> Site::Missing(Architecture architecture) const {
  if (architecture == Architecture::kMicroservice && !containers_) return containers_.error();
  if (architecture == Architecture::kDistributed && !link_) return link_.error();
  return std::nullopt;
}

Result<Server> Site::Start(Architecture architecture) {
  CHECK(architecture != Architecture::kInProcess);
  if (const auto missing = Missing(architecture)) return std::unexpected(*missing);
  const Ports ports = TRY(FreePorts());
  const Instant begin = clock_.Now();
  Server server{.launched = TRY(Launch(architecture, ports))};
  const std::string& address = server.launched->address();
  server.http = fmt::format("http://{}:{}", address, ports.http);
  server.grpc = fmt::format("grpc://{}:{}", address, ports.grpc);
  const auto ready = [&] {
    return launch::AskHttp(server.http + "/v2/health/ready", kOneAnswer, clock_).has_value();
  };
  TRY_STATUS(launch::WaitUntilReady(*server.launched, ready, begin + options_.start_timeout, clock_));
  server.start = clock_.Now() - begin;
  return server;
}

Result<std::unique_ptr<launch::Launched>> Site::Launch(Architecture architecture, const Ports& ports) {
  if (architecture == Architecture::kMicroservice) {
    return launch::StartContainer(
        *containers_,
        {.image = options_.image,
         .command = ServeArguments("/models", "127.0.0.1", ports),
         .mounts = {{.from = options_.model, .to = "/models/" + ModelName(options_.model)}}},
        clock_);
  }
  std::vector<std::string> command = ServeArguments(options_.model, (*link_)->far_address(), ports);
  command.insert(command.begin(), {options_.program, "serve"});
  return launch::StartProcess({.command = std::move(command), .link = link_->get()}, clock_);
}

}  // namespace weir::trial
