#include "launch/ssh/ssh_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "launch/process/command.h"

namespace weir::launch {
namespace {

constexpr Duration kSilence = 60s, kBeat = 15s;

// "PID MARK NAME" for each process whose environment has a variable that begins with $1. This command has
// none.
constexpr char kList[] = R"sh(for found in $(grep -lsz -e "^$1" /proc/[0-9]*/environ); do
  pid=${found#/proc/}; pid=${pid%/environ}
  mark=$(tr "\0" "\n" <"$found" | grep -e "^$1" | head -n 1)
  [ -n "$mark" ] && echo "$pid $mark $(cat /proc/$pid/comm)"
done 2>/dev/null; true)sh";

// Kills what bears any of the marks that are given.
constexpr char kKill[] = R"sh(for mark; do
  for found in $(grep -lsxzF -e "$mark" /proc/[0-9]*/environ); do
    pid=${found#/proc/}; kill -s KILL "${pid%/environ}"
  done
done 2>/dev/null; true)sh";

// Without a supervisor, whose mark would be among those that are looked for.
Result<std::string> RunScript(const SshHost& host, const char* script,
                              const std::vector<std::string>& arguments, const Clock& clock) {
  std::vector<std::string> there{"sh", "-c", script, "weir"};
  there.insert(there.end(), arguments.begin(), arguments.end());
  std::vector<std::string> command = TRY(SshArguments(host));
  command.push_back(ToShell(there));
  const Output output = TRY(RunCommand({.arguments = std::move(command), .timeout = 60s}, clock));
  if (output.ending == Ending{}) return output.out;
  return std::unexpected(SshError(host, output.err));
}

// The next word of `line`, which loses it.
std::string_view TakeWord(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

std::optional<StartedThere> ParseStarted(std::string_view line) {
  StartedThere started;
  const std::string_view pid = TakeWord(line);
  const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), started.pid);
  started.mark = TakeWord(line);
  started.name = line;
  const auto owner = OwnerOfMark(started.mark);
  if (error != std::errc() || end != pid.data() + pid.size() || !owner) return std::nullopt;
  started.owner = *owner;
  return started;
}

}  // namespace

Result<std::unique_ptr<Launched>> StartOverSsh(const SshHost& host, Kept kept, int stop_signal,
                                               const Clock& clock) {
  kept.silence = kSilence;
  std::vector<std::string> supervisor = KeeperArguments(kept);
  supervisor.erase(supervisor.begin());  // the shell: bash where the node has it, which can tell silence
  std::vector<std::string> arguments = TRY(SshArguments(host));
  arguments.push_back("shell=sh; command -v bash >/dev/null 2>&1 && shell=bash; exec \"$shell\" " +
                      ToShell(supervisor));
  const std::string name =
      fmt::format("{} on {}", kept.command.empty() ? "" : kept.command[0], host.destination);
  return TRY(
      KeptProgram::Start({.name = name, .address = host.Address(), .stop_signal = stop_signal, .beat = kBeat},
                         {.arguments = std::move(arguments), .environment = {OwnerVariable()}}, clock));
}

Result<std::vector<StartedThere>> ListStartedOn(const SshHost& host, const Clock& clock) {
  const std::string listed = TRY(RunScript(host, kList, {MarkPrefix()}, clock));
  std::vector<StartedThere> all;
  std::string_view rest = listed;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (auto started = ParseStarted(line)) all.push_back(std::move(*started));
  }
  return all;
}

Result<std::vector<std::string>> RemoveOrphansOn(const SshHost& host, const Clock& clock) {
  std::vector<StartedThere> dead = TRY(ListStartedOn(host, clock));
  std::erase_if(dead, [](const StartedThere& one) { return one.owner.Lives(); });
  std::vector<std::string> marks, done;
  for (const StartedThere& one : dead) {
    marks.push_back(one.mark);
    done.push_back(fmt::format("killed process {} ({}) on {}, which process {} here had left running",
                               one.pid, EscapeBytes(one.name), host.destination, one.owner.pid));
  }
  if (!marks.empty()) TRY_STATUS(RunScript(host, kKill, marks, clock));
  return done;
}

}  // namespace weir::launch
