#include "launch/process/orphans.h"

#include <dirent.h>
#include <fmt/format.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "launch/process/command.h"
#include "launch/process/spawn.h"

namespace weir::launch {
namespace {

constexpr std::string_view kPrefix = "weir-";
constexpr std::string_view kVariable = "WEIR_OWNER=";
constexpr std::string_view kLabel = "weir.owner";

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

// Calls `look` with each variable of the process's environment until it is content.
template <typename Look>
bool AnyVariable(int pid, const Look& look) {
  const std::string environment = ReadProc(fmt::format("/proc/{}/environ", pid));
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (look(variable)) return true;
    rest.remove_prefix(std::min(rest.size(), variable.size() + 1));
  }
  return false;
}

// A mark says more than an owner's variable: who started it, and from where.
std::optional<Owner> OwnerOfProcess(int pid) {
  std::optional<Owner> owner;
  AnyVariable(pid, [&](std::string_view variable) {
    const auto kept = OwnerOfMark(variable);
    if (kept)
      owner = kept;
    else if (variable.starts_with(kVariable))
      owner = ParseOwner(variable.substr(kVariable.size()));
    return kept.has_value();
  });
  return owner;
}

std::vector<int> AllProcesses() {
  std::vector<int> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* entry = proc != nullptr ? ::readdir(proc.get()) : nullptr) {
    std::string_view name = entry->d_name;
    int pid = 0;
    if (TakeNumber(name, pid) && name.empty() && pid != ::getpid()) pids.push_back(pid);
  }
  return pids;
}

void ListProcesses(std::vector<Started>& all) {
  for (const int pid : AllProcesses()) {
    const auto owner = OwnerOfProcess(pid);
    if (!owner) continue;
    std::string name = ReadProc(fmt::format("/proc/{}/comm", pid));
    while (name.ends_with('\n')) name.pop_back();
    all.push_back({.kind = Started::Kind::kProcess, .owner = *owner, .name = std::move(name), .pid = pid});
  }
}

void ListContainers(const std::string& tool, const Clock& clock, std::vector<Started>& all) {
  const std::string filter = fmt::format("--filter=label={}", kLabel);
  const auto listed = RunWell({.arguments = {tool, "ps", "--all", filter, "--format={{.Names}}"}}, clock);
  if (!listed) return;
  std::string_view rest = *listed;
  while (!rest.empty()) {
    std::string name(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (const auto owner = OwnerOfName(name))
      all.push_back(
          {.kind = Started::Kind::kContainer, .owner = *owner, .name = std::move(name), .tool = tool});
  }
}

// The owner of a device: its alias says; before it has one, the process number in its name does.
std::optional<Owner> OwnerOfDevice(const std::string& device) {
  std::string alias = ReadProc(fmt::format("/sys/class/net/{}/ifalias", device));
  if (const auto owner = OwnerOfName(alias)) return owner;
  std::string_view rest = device;
  if (!alias.empty() || !rest.starts_with("weir")) return std::nullopt;
  rest.remove_prefix(4);
  Owner owner;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), owner.pid, 16);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '.' || owner.pid <= 0)
    return std::nullopt;
  owner.start_ticks = StartTicks(owner.pid);
  if (owner.start_ticks == 0) owner.start_ticks = UINT64_MAX;  // there is none: dead
  return owner;
}

void ListLinks(std::vector<Started>& all) {
  const std::unique_ptr<struct if_nameindex, void (*)(struct if_nameindex*)> devices(::if_nameindex(),
                                                                                     ::if_freenameindex);
  for (const auto* one = devices.get(); one != nullptr && one->if_index != 0; ++one) {
    const std::string device = one->if_name;
    if (const auto owner = OwnerOfDevice(device))
      all.push_back({.kind = Started::Kind::kLink, .owner = *owner, .name = device});
  }
}

// Whether the process ended before `until`.
bool WaitForEnd(int pidfd, Instant until, const Clock& clock) {
  pollfd ended{pidfd, POLLIN, 0};
  while (::poll(&ended, 1, PollTimeout(until, clock)) <= 0)
    if (clock.Now() >= until) return false;
  return true;
}

// Whether it is gone. Its number may have come to mean another since it was listed: the descriptor cannot.
bool RemoveProcess(const Started& process, Instant until, const Clock& clock) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!pidfd.valid()) return errno == ESRCH;
  if (OwnerOfProcess(process.pid) != process.owner) return true;
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) != 0) return errno == ESRCH;
  return WaitForEnd(pidfd.get(), until, clock);
}

bool RemoveContainer(const Started& container, const Clock& clock) {
  (void)RunCommand({.arguments = {container.tool, "kill", "--signal=KILL", container.name}}, clock);
  (void)RunCommand({.arguments = {container.tool, "rm", "--force", container.name}}, clock);
  const auto inspected =
      RunCommand({.arguments = {container.tool, "container", "inspect", container.name}}, clock);
  return inspected && inspected->ending.exit_status != 0;
}

// One that the kernel has taken away meanwhile is gone as well.
bool RemoveLink(const Started& link, const Clock& clock) {
  (void)RunCommand({.arguments = {"ip", "link", "delete", "dev", link.name}}, clock);
  return ::if_nametoindex(link.name.c_str()) == 0;
}

bool Remove(const Started& started, Instant until, const Clock& clock) {
  switch (started.kind) {
    case Started::Kind::kProcess:
      return RemoveProcess(started, until, clock);
    case Started::Kind::kContainer:
      return RemoveContainer(started, clock);
    case Started::Kind::kLink:
      return RemoveLink(started, clock);
  }
  return false;
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

std::string OwnerLabel() {
  const Owner owner = ThisProcess();
  return fmt::format("{}={}-{}", kLabel, owner.pid, owner.start_ticks);
}

std::string MarkPrefix() {
  std::string boot = ReadProc("/proc/sys/kernel/random/boot_id");
  while (boot.ends_with('\n')) boot.pop_back();
  return fmt::format("WEIR_KEPT={}:", boot);
}

std::string MakeMark(Instant now) { return MarkPrefix() + MakeName(now); }

std::optional<Owner> OwnerOfMark(std::string_view mark) {
  if (!mark.starts_with("WEIR_KEPT=")) return std::nullopt;
  const std::string prefix = MarkPrefix();
  if (!mark.starts_with(prefix)) return std::nullopt;
  return OwnerOfName(mark.substr(prefix.size()));
}

std::optional<int> ChildWith(const std::string& variable, int parent) {
  const std::string children = ReadProc(fmt::format("/proc/{0}/task/{0}/children", parent));
  std::string_view rest = children;
  for (int pid = 0; TakeNumber(rest, pid); rest.remove_prefix(std::min<size_t>(rest.size(), 1)))
    if (AnyVariable(pid, [&](std::string_view one) { return one == variable; })) return pid;
  return std::nullopt;
}

std::string Started::ToString() const {
  if (kind == Kind::kProcess) return fmt::format("process {} ({})", pid, EscapeBytes(name));
  return fmt::format("{} {}", kind == Kind::kLink ? "network link" : "container", name);
}

std::vector<Started> ListStarted(const Clock& clock) {
  std::vector<Started> all;
  ListProcesses(all);
  for (const char* tool : {"podman", "docker"}) ListContainers(tool, clock, all);
  ListLinks(all);
  return all;
}

std::vector<Started> StillRunning(const Owner& owner, Instant until, const Clock& clock) {
  while (true) {
    std::vector<Started> all = ListStarted(clock);
    std::erase_if(all,
                  [&](const Started& one) { return one.kind == Started::Kind::kLink || one.owner != owner; });
    if (all.empty() || clock.Now() >= until) return all;
    SleepUntil(std::min(until, clock.Now() + 20ms));
  }
}

std::vector<std::string> RemoveOrphans(const Clock& clock) {
  const Instant until = clock.Now() + 10s;
  std::vector<std::string> done;
  for (const Started& one : ListStarted(clock)) {
    if (one.owner.Lives()) continue;
    const bool gone = Remove(one, until, clock);
    done.push_back(fmt::format("{} {}, which process {} had left {}", gone ? "removed" : "could not remove",
                               one.ToString(), one.owner.pid,
                               one.kind == Started::Kind::kProcess ? "running" : "behind"));
  }
  return done;
}

}  // namespace weir::launch
