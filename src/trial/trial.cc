#include "trial/trial.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/file.h"
#include "launch/command.h"
#include "monitor/resources.h"

namespace weir::trial {
namespace {

constexpr Duration kPatience = 20s;  // of a server that is to end: it finishes what it has begun

// A file of its own name, removed with this object.
class TemporaryFile {
 public:
  static Result<TemporaryFile> Make() {
    std::error_code none;
    std::string path = (std::filesystem::temp_directory_path(none) / "weir-answers-XXXXXX").string();
    const UniqueFd fd(::mkstemp(path.data()));
    if (!fd.valid()) return FailErrno(path, errno);
    return TemporaryFile(std::move(path));
  }
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// CPU time of a server and all it started, between two moments.
class ServerCpu {
 public:
  static Result<ServerCpu> Watch(int pid, const Clock& clock) {
    return ServerCpu(TRY(monitor::ResourceMonitor::Start(clock, {.processes = {pid}})));
  }
  std::optional<double> StopSeconds() {
    const monitor::Resources used = monitor_->Stop();
    if (!used.app_cpu) return std::nullopt;
    return used.app_cpu->mean * used.wall_s;
  }

 private:
  explicit ServerCpu(std::unique_ptr<monitor::ResourceMonitor> monitor) : monitor_(std::move(monitor)) {}
  std::unique_ptr<monitor::ResourceMonitor> monitor_;
};

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return EscapeBytes(text.substr(text.rfind('\n') + 1));
}

Result<Outcome> RunApplication(const Workload& workload, const Setting& setting, const std::string& model,
                               const Clock& clock) {
  const TemporaryFile answers = TRY(TemporaryFile::Make());
  const launch::Output output = TRY(launch::RunCommand(
      {.arguments = RunArguments(workload, setting, model, answers.path()), .timeout = workload.timeout},
      clock));
  if (output.ending != launch::Ending{}) {
    return Fail(ErrorCode::kIo, fmt::format("the application ended with {}: {}", output.ending.ToString(),
                                            LastLine(output.err)));
  }
  Outcome outcome = TRY(ReadResult(TRY(ParseJson(output.out))));
  outcome.answers = TRY(ReadTextFile(answers.path()));
  return outcome;
}

Result<Outcome> RunAgainstServer(Site& site, const Workload& workload, const Setting& setting,
                                 const Clock& clock) {
  Server server = TRY(site.Start(setting.architecture));
  ServerCpu cpu = TRY(ServerCpu::Watch(server.launched->pid(), clock));
  const std::string& url = setting.protocol == Protocol::kHttp ? server.http : server.grpc;
  Outcome outcome =
      TRY(RunApplication(workload, setting, url + "/" + ModelName(workload.model_folder), clock));
  if (const auto seconds = cpu.StopSeconds())
    outcome.server_cpu_ms = *seconds * 1e3 / static_cast<double>(outcome.images);
  outcome.server_start = server.start;
  const launch::Ending ending = server.launched->Stop(kPatience);
  if (ending == launch::Ending{}) return outcome;
  return Fail(ErrorCode::kIo,
              fmt::format("the server ended with {}: {}", ending.ToString(), server.launched->LastWords()));
}

}  // namespace

std::string_view ToString(Protocol protocol) { return protocol == Protocol::kHttp ? "http" : "grpc"; }
std::string_view ToString(Mode mode) { return mode == Mode::kSync ? "sync" : "async"; }

std::vector<std::string> RunArguments(const Workload& workload, const Setting& setting,
                                      const std::string& model, const std::string& answers_file) {
  std::vector<std::string> arguments{workload.program, "run", model};
  arguments.insert(arguments.end(), workload.data.begin(), workload.data.end());
  arguments.insert(arguments.end(),
                   {"--mode", std::string(ToString(setting.mode)), "--answers", answers_file, "--json", "-"});
  if (setting.mode == Mode::kAsync) {
    arguments.insert(arguments.end(), {"--in-flight", fmt::format("{}", workload.in_flight)});
  }
  arguments.insert(arguments.end(), workload.arguments.begin(), workload.arguments.end());
  if (setting.architecture == Architecture::kInProcess) {
    const auto& own = workload.in_process_arguments;
    arguments.insert(arguments.end(), own.begin(), own.end());
  }
  return arguments;
}

Result<Outcome> ReadResult(const Json& result) {
  Outcome outcome{.images = TRY(GetInteger(result, "images")),
                  .images_per_s = TRY(GetNumber(result, "throughput_images_per_s"))};
  if (outcome.images <= 0) return Fail(ErrorCode::kIo, "no picture was answered");
  double cores = 0;
  for (const char* part : {"app_cpu", "recogniser_cpu"}) {
    const auto range = result.value("resources", Json::object()).value(part, Json());
    if (range.is_object()) cores += TRY(GetNumber(range, "mean"));
  }
  outcome.client_cpu_ms =
      cores * TRY(GetNumber(result, "wall_s")) * 1e3 / static_cast<double>(outcome.images);
  return outcome;
}

Result<Outcome> RunTrial(Site& site, const Workload& workload, const Setting& setting, const Clock& clock) {
  const auto outcome = setting.architecture == Architecture::kInProcess
                           ? RunApplication(workload, setting, workload.model_folder, clock)
                           : RunAgainstServer(site, workload, setting, clock);
  if (outcome) return outcome;
  std::string name(ToString(setting.architecture));
  if (setting.architecture != Architecture::kInProcess)
    name += fmt::format(", {}", ToString(setting.protocol));
  return Context(fmt::format("{}, {}", name, ToString(setting.mode)), outcome.error());
}

}  // namespace weir::trial
