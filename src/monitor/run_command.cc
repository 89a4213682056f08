#include "monitor/run_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "monitor/proc.h"

namespace weir::monitor {
namespace {

// Two accounts of one process's memory are this far apart at most: the kernel adds its pages up by CPU,
// roughly.
constexpr int64_t kMemoryMargin = 2 << 20;

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// Keeps the signals of kPassedOn from this thread (and those that it starts) while it lives, for good: one
// that came together with the command's end was meant for the command.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&blocked_);
    for (const int signal : kPassedOn) sigaddset(&blocked_, signal);
    pthread_sigmask(SIG_BLOCK, &blocked_, &before_);
  }
  ~BlockedSignals() {
    const timespec no_wait{};
    while (::sigtimedwait(&blocked_, nullptr, &no_wait) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& blocked() const { return blocked_; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t blocked_, before_;
};

Result<pid_t> Spawn(const std::vector<std::string>& arguments, const sigset_t& mask) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &mask);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], nullptr, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return FailErrno(fmt::format("cannot start {}", EscapeBytes(arguments[0])), error);
  return pid;
}

// Passes one signal of `signals` on to `pid`. What a terminal's keys send reaches the whole foreground group,
// so the command has had it already; the kernel marks it as its own.
void PassOn(const UniqueFd& signals, pid_t pid) {
  signalfd_siginfo info{};
  if (::read(signals.get(), &info, sizeof info) != sizeof info) return;
  if (info.ssi_code != SI_KERNEL) ::kill(pid, static_cast<int>(info.ssi_signo));
}

// The most memory that process `pid` had resident so far.
std::optional<int64_t> PeakResident(pid_t pid) {
  const auto status = ReadSmall(fmt::format("/proc/{}/status", pid));
  return status ? ParsePeakResident(*status) : std::nullopt;
}

void Raise(std::optional<int64_t>& most, std::optional<int64_t> value) {
  if (value) most = std::max(most.value_or(0), *value);
}

// Waits until `pid` has ended, and leaves it to be asked for its end: its counters can still be read.
// Meanwhile `peak` is raised to its own memory's, looked at after 1 ms, 2 ms, 4 ms and so on: the samples
// proper come too seldom for a command that is over in no time.
Status WaitForEnd(pid_t pid, const sigset_t& blocked, std::optional<int64_t>& peak) {
  const UniqueFd process(
      static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // glibc 2.36 has it for C only
  if (!process.valid()) return FailErrno("cannot watch the command (Linux 5.3 or later is needed)", errno);
  const UniqueFd signals(::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return FailErrno("signals", errno);
  for (int patience_ms = 1; true; patience_ms = std::min(2 * patience_ms, 128)) {
    Raise(peak, PeakResident(pid));
    pollfd ready[] = {{process.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    const int timeout_ms = patience_ms <= 64 ? patience_ms : -1;
    if (::poll(ready, 2, timeout_ms) < 0 && errno != EINTR)
      return FailErrno("waiting for the command", errno);
    if (ready[0].revents != 0) return {};
    if (ready[1].revents != 0) PassOn(signals, pid);
  }
}

double ToSeconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Asks for the end of `pid`: its status and what it used. What the kernel calls a process's largest memory
// has in it what was in memory before its program took it over: that was ours, of `own_peak` at most. A
// figure above is the command's own.
void Reap(pid_t pid, std::optional<int64_t> own_peak, CommandUsage& usage) {
  int status = 0;
  rusage used{};
  while (::wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  usage.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  usage.exit_status = usage.signal != 0 ? 128 + usage.signal : WEXITSTATUS(status);
  usage.user_s = ToSeconds(used.ru_utime);
  usage.system_s = ToSeconds(used.ru_stime);
  const int64_t largest = used.ru_maxrss * 1024;
  if (own_peak && largest > *own_peak + kMemoryMargin) Raise(usage.max_resident_bytes, largest);
}

// The samples know CPU time in ticks of 10 ms, and miss what ends between two; the system's own sum at the
// end does not.
void UseExactCpu(const CommandUsage& usage, Resources& resources) {
  if (!resources.app_cpu || resources.wall_s <= 0) return;
  Range& cpu = *resources.app_cpu;
  const bool one_sample = resources.samples == 1;
  cpu.mean = std::max(cpu.mean, (usage.user_s + usage.system_s) / resources.wall_s);
  cpu.max = std::max(cpu.max, cpu.mean);
  cpu.min = one_sample ? cpu.mean : std::min(cpu.min, cpu.mean);
}

}  // namespace

Result<CommandUsage> RunAndMonitor(const std::vector<std::string>& arguments, const Clock& clock,
                                   ResourceMonitor::Options options) {
  if (arguments.empty()) return Fail(ErrorCode::kInvalidArgument, "no command to run");
  const BlockedSignals signals;
  if (!options.gpus && !options.nvml_library.empty()) {  // before the command runs, not beside it
    if (auto opened = GpuReader::Open(options.nvml_library)) options.gpus = *std::move(opened);
    options.nvml_library.clear();
  }
  options.started = clock.Now();
  CommandUsage usage;
  const pid_t pid = TRY(Spawn(arguments, signals.before()));
  const auto own_peak = PeakResident(::getpid());
  Raise(usage.max_resident_bytes, PeakResident(pid));
  options.processes = {pid};
  options.peaks = true;
  auto monitor = ResourceMonitor::Start(clock, options);
  const Status ended = monitor ? WaitForEnd(pid, signals.blocked(), usage.max_resident_bytes)
                               : Status(std::unexpected(monitor.error()));
  usage.wall_s = Seconds(clock.Now() - *options.started);
  if (monitor) usage.resources = (*monitor)->Stop();
  if (!ended) ::kill(pid, SIGTERM);  // not watched, it would run on for nobody
  Raise(usage.max_resident_bytes, std::exchange(usage.resources.largest_process_bytes, std::nullopt));
  Reap(pid, own_peak, usage);
  if (!ended) return std::unexpected(ended.error());
  UseExactCpu(usage, usage.resources);
  return usage;
}

}  // namespace weir::monitor
