#include "launch/container/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "launch/network/network_link.h"
#include "launch/process/command.h"
#include "launch/process/orphans.h"
#include "launch/process/program.h"

namespace weir::launch {
namespace {

constexpr char kNoProgram[] = "/no-such-program";  // a tool that complains of it has done all before it well

std::vector<std::string> Joined(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> ToolCommand(const ContainerTool& tool, const std::vector<std::string>& arguments) {
  return Joined(Joined({tool.program}, tool.global_options), arguments);
}

std::string LastLine(const Output& output) {
  std::string_view text = output.err.empty() ? output.out : output.err;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return EscapeBytes(text.substr(text.rfind('\n') + 1));
}

int64_t HardLimit(__rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit.rlim_max > rlim_t{1} << 40 ? int64_t{1} << 40 : static_cast<int64_t>(limit.rlim_max);
}

// Whether the tool gets as far as looking for the program in a container of the image. Nothing of the image
// runs.
Status TryToStart(const ContainerTool& tool, const std::string& image, const Clock& clock) {
  const auto arguments = Joined(Joined({"run", "--rm", "--pull=never", "--network=none"}, tool.run_options),
                                {std::string("--entrypoint=") + kNoProgram, image});
  const Output output = TRY(RunCommand({.arguments = ToolCommand(tool, arguments)}, clock));
  if (output.ending != Ending{} && output.err.find(kNoProgram) != std::string::npos) return {};
  return Fail(ErrorCode::kUnsupported, LastLine(output));
}

// Runs the tool while standard input is open, and then ends the container, which no signal to the tool can be
// trusted to do: $1 kills it, $2 removes it, the rest is the tool's command. Killing is tried for 10 s, as
// the tool may only just be making the container; when the tool has ended, the shell ends what tries. The
// rest is as in supervisor.cc.
constexpr char kScript[] = R"sh(kill=$1 remove=$2
shift 2
exec 3<&0 4>&2 </dev/null 2>/dev/null
(
  trap "" TERM INT HUP QUIT PIPE
  while read -r word; do :; done <&3
  round=0
  until eval "$kill" || [ $round -ge 50 ]; do round=$((round + 1)); sleep 0.2; done
  eval "$remove"
  kill -s KILL 0
) >/dev/null 4>&- &
watcher=$!
trap : TERM INT HUP QUIT
"$@" 2>&4 3<&- 4>&-
status=$?
kill -s KILL $watcher
exit $status)sh";

std::vector<std::string> KeeperArguments(const ContainerTool& tool, const std::string& container,
                                         const std::vector<std::string>& command) {
  return Joined({"sh", "-c", kScript, "weir-supervisor",
                 ToShell(ToolCommand(tool, {"kill", "--signal=KILL", container})),
                 ToShell(ToolCommand(tool, {"rm", "--force", container}))},
                command);
}

// The first process of a container, as soon as it runs.
Result<int> FindPid(const ContainerTool& tool, const std::string& container, Launched& front,
                    Duration timeout, const Clock& clock) {
  int pid = 0;
  const auto look = [&] {
    const auto output = RunCommand({.arguments = ToolCommand(tool, {"inspect", "--type=container",
                                                                    "--format={{.State.Pid}}", container})},
                                   clock);
    if (output) std::from_chars(output->out.data(), output->out.data() + output->out.size(), pid);
    return pid > 0;
  };
  TRY_STATUS(WaitUntilReady(front, look, clock.Now() + timeout, clock));
  return pid;
}

// The container's front program with the container behind it.
class Container final : public Launched {
 public:
  Container(ContainerTool tool, std::string container, UniqueFd line, std::unique_ptr<Program> front,
            const Clock& clock)
      : tool_(std::move(tool)),
        container_(std::move(container)),
        clock_(clock),
        line_(std::move(line)),
        front_(std::move(front)) {}
  ~Container() override { Stop(Duration::zero()); }

  Status WaitForStart(Duration timeout) {
    pid_ = TRY(FindPid(tool_, container_, *front_, timeout, clock_));
    return {};
  }

  const std::string& name() const override { return front_->name(); }
  int pid() const override { return pid_; }
  const std::string& address() const override { return front_->address(); }
  std::optional<Ending> WaitForEnd(Instant until) override { return front_->WaitForEnd(until); }
  std::string LastWords() const override { return front_->LastWords(); }

  // The tool's own end is not asked for: killed, it would leave the container behind.
  Ending Stop(Duration patience) override {
    if (const auto ending = front_->WaitForEnd(clock_.Now())) return *ending;
    front_->Signal(SIGTERM);
    if (const auto ending = front_->WaitForEnd(clock_.Now() + patience)) return *ending;
    (void)RunCommand({.arguments = ToolCommand(tool_, {"kill", "--signal=KILL", container_})}, clock_);
    if (const auto ending = front_->WaitForEnd(clock_.Now() + 10s)) return *ending;
    return front_->Stop(Duration::zero());
  }

 private:
  const ContainerTool tool_;
  const std::string container_;
  const Clock& clock_;
  const UniqueFd line_;  // held open: when this process ends, so does the container
  const std::unique_ptr<Program> front_;
  int pid_ = 0;
};

}  // namespace

std::vector<ContainerTool> ToolsToTry(const std::string& program, int64_t open_files, int64_t processes) {
  const std::vector<std::string> limits{
      fmt::format("--ulimit=nofile={0}:{0}", open_files),
      fmt::format("--ulimit=nproc={0}:{0}", std::min<int64_t>(processes, 32768))};
  std::vector<ContainerTool> tools{{program, {}, {}}, {program, {}, limits}};
  if (program != "podman") return tools;
  for (const char* runtime : {"runc", "crun"}) {
    tools.push_back({program, {fmt::format("--runtime={}", runtime)}, {}});
    tools.push_back({program, {fmt::format("--runtime={}", runtime)}, limits});
  }
  return tools;
}

Result<ContainerTool> FindContainerTool(const std::string& image, const Clock& clock) {
  std::vector<std::string> words;
  for (const char* program : {"podman", "docker"}) {
    const auto here = RunWell({.arguments = {program, "image", "inspect", "--format={{.Id}}", image}}, clock);
    if (!here) {
      words.push_back(here.error().message);
      continue;
    }
    for (const ContainerTool& tool : ToolsToTry(program, HardLimit(RLIMIT_NOFILE), HardLimit(RLIMIT_NPROC))) {
      const Status started = TryToStart(tool, image, clock);
      if (started) return tool;
      words.push_back(started.error().message);
    }
  }
  return Fail(ErrorCode::kUnsupported,
              fmt::format("no container of {} can be started here (build the image with tools/container.sh, "
                          "which wants podman and runc): {}",
                          EscapeBytes(image), fmt::join(words, "; ")));
}

std::map<std::string, std::string> ContainerToolVersions(const Clock& clock) {
  std::map<std::string, std::string> versions;
  for (const char* program : {"podman", "docker"}) {
    const auto said = RunWell({.arguments = {program, "--version"}}, clock);  // "podman version 4.3.1"
    if (!said) continue;
    const size_t begin = said->find_first_of("0123456789");
    if (begin == std::string::npos) continue;
    versions[program] = EscapeBytes(said->substr(begin, said->find_first_of(" ,\n", begin) - begin));
  }
  return versions;
}

std::vector<std::string> RunArguments(const ContainerTool& tool, const ContainerOptions& options,
                                      const std::string& name) {
  std::vector<std::string> arguments =
      Joined(ToolCommand(tool, {"run"}), {"--rm", "--name=" + name, "--label=" + OwnerLabel(), "--pull=never",
                                          "--log-driver=none", "--no-healthcheck"});
  if (options.link != nullptr)
    arguments.push_back("--network=ns:" + options.link->far_namespace_path());
  else
    arguments.emplace_back("--network=host");
  arguments = Joined(std::move(arguments), tool.run_options);
  for (const std::string& variable : options.environment) arguments.push_back("--env=" + variable);
  for (const auto& mount : options.mounts)
    arguments.push_back(fmt::format("--volume={}:{}:ro", mount.from, mount.to));
  if (!options.cpu_list.empty())
    arguments.push_back(fmt::format("--cpuset-cpus={}", fmt::join(options.cpu_list, ",")));
  if (options.cpus > 0) arguments.push_back(fmt::format("--cpus={}", options.cpus));
  if (options.memory_bytes > 0) arguments.push_back(fmt::format("--memory={}b", options.memory_bytes));
  arguments.push_back(options.image);
  return Joined(std::move(arguments), options.command);
}

Result<std::unique_ptr<Launched>> StartContainer(const ContainerTool& tool, const ContainerOptions& options,
                                                 const Clock& clock) {
  if (options.link != nullptr && tool.program == "docker")
    return Fail(ErrorCode::kUnsupported, "docker cannot start a container behind a network link; podman can");
  const std::string container = MakeName(clock.Now());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("a pipe", errno);
  const UniqueFd keepers(ends[0]);
  UniqueFd ours(ends[1]);
  auto front = TRY(Program::Start(
      "container " + options.image, options.link != nullptr ? options.link->far_address() : "127.0.0.1",
      {.arguments = KeeperArguments(tool, container, RunArguments(tool, options, container)),
       .input = keepers.get()},
      clock));
  auto launched = std::make_unique<Container>(tool, container, std::move(ours), std::move(front), clock);
  TRY_STATUS(launched->WaitForStart(options.start_timeout));
  return launched;
}

}  // namespace weir::launch
