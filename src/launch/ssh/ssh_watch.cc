#include "launch/ssh/ssh_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "launch/process/orphans.h"
#include "launch/ssh/ssh_server.h"

namespace weir::launch {
namespace {

constexpr Duration kLongest = 24h;
constexpr int kNoSuchProgram = 127;  // a shell's, and env's

}  // namespace

Result<std::unique_ptr<SshWatch>> SshWatch::Start(const SshHost& host, const Clock& clock) {
  std::vector<std::string> there{"weir", "monitor", "--until-eof", "--json", "-", "--pid"};
  const size_t words = there.size();
  for (const StartedThere& one : TRY(ListStartedOn(host, clock))) {
    if (one.owner == ThisProcess()) there.push_back(fmt::format("{}", one.pid));
  }
  if (there.size() == words)
    return Fail(ErrorCode::kNotFound, fmt::format("nothing of this process runs on {}", host.destination));
  std::vector<std::string> command = TRY(SshArguments(host));
  command.push_back(ToShell(there));

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("a pipe", errno);
  std::unique_ptr<SshWatch> watch(new SshWatch(host));
  watch->input_ = UniqueFd(ends[1]);
  watch->thread_ = StartThread("launch-watch", [watch = watch.get(), &clock, command = std::move(command),
                                                input = UniqueFd(ends[0])](std::stop_token) {
    watch->output_ = RunCommand({.arguments = command, .input = input.get(), .timeout = kLongest}, clock);
  });
  return watch;
}

SshWatch::~SshWatch() {
  input_ = UniqueFd();
  if (thread_.joinable()) thread_.join();
}

Result<results::Resources> SshWatch::Stop() {
  input_ = UniqueFd();
  thread_.join();
  const Output output = TRY(std::move(output_));
  if (output.ending.exit_status == kNoSuchProgram)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} has no weir in its PATH: install it there for its "
                                                     "CPU and memory",
                                                     host_.destination));
  if (output.ending != Ending{})
    return Fail(ErrorCode::kIo, fmt::format("weir monitor on {}: {}: {}", host_.destination,
                                            output.ending.ToString(), EscapeBytes(output.err)));
  const std::string where = fmt::format("weir monitor on {}", host_.destination);
  const Json json = TRY_CONTEXT(ParseJson(output.out), where);
  auto result = TRY_CONTEXT(results::MonitorResult::FromJson(json), where);
  return std::move(result.resources);
}

}  // namespace weir::launch
