#include "launch/leftovers.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <memory>

#include "base/file.h"
#include "launch/command.h"

namespace weir::launch {
namespace {

constexpr std::string_view kPrefix = "weir-";
constexpr std::string_view kVariable = "WEIR_OWNER=";

// Files under /proc have no size: they are read to their end. Empty where there is none.
std::string ReadProc(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  std::string text;
  char buffer[4096];
  while (file != nullptr && text.size() < (4U << 20)) {
    const size_t got = std::fread(buffer, 1, sizeof buffer, file.get());
    if (got == 0) break;
    text.append(buffer, got);
  }
  return text;
}

// Takes a number off the front of `text`.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// "PID-TICKS" at the front of `text`.
std::optional<Owner> ParseOwner(std::string_view text) {
  Owner owner;
  if (!TakeNumber(text, owner.pid) || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  if (!TakeNumber(text, owner.start_ticks) || owner.pid <= 0) return std::nullopt;
  return owner;
}

// Field 22 of /proc/PID/stat; the name in field 2 may hold blanks and brackets. 0: there is no such process.
uint64_t StartTicks(int pid) {
  const std::string stat = ReadProc(fmt::format("/proc/{}/stat", pid));
  size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  uint64_t ticks = 0;
  std::string_view rest = std::string_view(stat).substr(at + 1);
  return TakeNumber(rest, ticks) ? ticks : 0;
}

std::optional<Owner> OwnerOfProcess(int pid) {
  const std::string environment = ReadProc(fmt::format("/proc/{}/environ", pid));
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable.starts_with(kVariable)) return ParseOwner(variable.substr(kVariable.size()));
    rest.remove_prefix(std::min(rest.size(), variable.size() + 1));
  }
  return std::nullopt;
}

void KillProcesses(std::vector<std::string>& done) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* entry = proc != nullptr ? ::readdir(proc.get()) : nullptr) {
    std::string_view name = entry->d_name;
    int pid = 0;
    if (!TakeNumber(name, pid) || !name.empty() || pid == ::getpid()) continue;
    const auto owner = OwnerOfProcess(pid);
    if (!owner || owner->Lives()) continue;
    if (::kill(pid, SIGKILL) == 0)
      done.push_back(fmt::format("killed process {}, which process {} had left running", pid, owner->pid));
  }
}

void RemoveContainers(const std::string& tool, const Clock& clock, std::vector<std::string>& done) {
  const auto listed =
      RunWell({.arguments = {tool, "ps", "--all", "--filter=name=weir-", "--format={{.Names}}"}}, clock);
  if (!listed) return;
  std::string_view rest = *listed;
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const auto owner = OwnerOfName(name);
    if (!owner || owner->Lives()) continue;
    (void)RunCommand({.arguments = {tool, "kill", "--signal=KILL", name}}, clock);
    (void)RunCommand({.arguments = {tool, "rm", "--force", name}}, clock);
    done.push_back(
        fmt::format("removed the container {}, which process {} had left behind", name, owner->pid));
  }
}

}  // namespace

bool Owner::Lives() const { return StartTicks(pid) == start_ticks; }

Owner ThisProcess() { return {.pid = ::getpid(), .start_ticks = StartTicks(::getpid())}; }

std::string MakeName(Instant now) {
  const Owner owner = ThisProcess();
  return fmt::format("{}{}-{}-{}", kPrefix, owner.pid, owner.start_ticks, now.time_since_epoch().count());
}

std::optional<Owner> OwnerOfName(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return ParseOwner(name.substr(kPrefix.size()));
}

std::string OwnerVariable() {
  const Owner owner = ThisProcess();
  return fmt::format("{}{}-{}", kVariable, owner.pid, owner.start_ticks);
}

std::vector<std::string> RemoveLeftovers(const Clock& clock) {
  std::vector<std::string> done;
  KillProcesses(done);
  for (const char* tool : {"podman", "docker"}) RemoveContainers(tool, clock, done);
  return done;
}

}  // namespace weir::launch
