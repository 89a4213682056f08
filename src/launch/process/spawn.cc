#include "launch/process/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/json.h"

namespace weir::launch {
namespace {

// The child's message through a pipe if a step fails before the program runs.
struct Fault {
  const char* step = nullptr;  // the same address in both: the child is a copy
  int error = 0;
};

// All that the child needs, made before the fork: between fork and exec in a process with threads only
// async-signal-safe calls are allowed. (posix_spawn cannot enter a namespace, nor ask for a death signal.)
struct Plan {
  std::vector<std::string> candidates;  // paths to try in turn
  std::vector<std::string> environment;
  std::vector<char*> argv, envp;
  cpu_set_t cpus;
  int null = -1;
  pid_t parent = 0;
};

std::string_view NameOf(std::string_view variable) { return variable.substr(0, variable.find('=')); }

std::vector<std::string> MergedEnvironment(const std::vector<std::string>& changes) {
  std::vector<std::string> merged = changes;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const bool changed =
        std::ranges::any_of(changes, [&](const auto& change) { return NameOf(change) == NameOf(*variable); });
    if (!changed) merged.emplace_back(*variable);
  }
  return merged;
}

std::vector<std::string> CandidatesFor(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  std::string_view rest = path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin";
  std::vector<std::string> candidates;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty()) candidates.push_back(fmt::format("{}/{}", folder, program));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  return candidates;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child: each step, or the name of the one that failed (errno tells why).
const char* Prepare(const SpawnOptions& options, const Plan& plan) {
  sigset_t none;
  sigemptyset(&none);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  if (options.parent_death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, options.parent_death_signal) != 0) return "parent death signal";
    if (::getppid() != plan.parent) ::_exit(1);  // it died before the line above
  }
  if (options.network_namespace >= 0 && ::setns(options.network_namespace, CLONE_NEWNET) != 0)
    return "network namespace";
  if (!options.cpus.empty() && ::sched_setaffinity(0, sizeof plan.cpus, &plan.cpus) != 0) return "CPU list";
  if (!options.working_folder.empty() && ::chdir(options.working_folder.c_str()) != 0)
    return "working folder";
  if (::dup2(options.input >= 0 ? options.input : plan.null, 0) < 0 ||
      ::dup2(options.output >= 0 ? options.output : plan.null, 1) < 0 ||
      ::dup2(options.errors >= 0 ? options.errors : plan.null, 2) < 0)
    return "standard streams";
  return nullptr;
}

[[noreturn]] void BecomeProgram(const SpawnOptions& options, const Plan& plan, int faults) {
  Fault fault{Prepare(options, plan), errno};
  if (fault.step == nullptr) {
    ::syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC: whatever a library left open */);
    fault = {"", ENOENT};
    for (const std::string& candidate : plan.candidates) {
      ::execve(candidate.c_str(), plan.argv.data(), plan.envp.data());
      if (errno != ENOENT && errno != ENOTDIR) fault.error = errno;
    }
  }
  [[maybe_unused]] const ssize_t told = ::write(faults, &fault, sizeof fault);
  ::_exit(127);
}

Result<Plan> MakePlan(const SpawnOptions& options, int null) {
  Plan plan{.null = null, .parent = ::getpid()};
  if (options.arguments.empty() || options.arguments[0].empty())
    return Fail(ErrorCode::kInvalidArgument, "no command to start");
  plan.candidates = CandidatesFor(options.arguments[0]);
  plan.environment = MergedEnvironment(options.environment);
  plan.argv = Pointers(options.arguments);
  plan.envp = Pointers(plan.environment);
  CPU_ZERO(&plan.cpus);
  for (const int cpu : options.cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no CPU {}", cpu));
    CPU_SET(cpu, &plan.cpus);
  }
  return plan;
}

}  // namespace

int PollTimeout(Instant until, const Clock& clock) {
  const Duration left = until - clock.Now();
  if (left <= Duration::zero()) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<int64_t>(ms, 3'600'000));
}

Result<Child> Child::Spawn(const SpawnOptions& options) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  if (!null.valid() || ::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("starting a program", errno);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const Plan plan = TRY(MakePlan(options, null.get()));

  const pid_t pid = ::fork();
  if (pid == 0) BecomeProgram(options, plan, write_end.get());
  if (pid < 0) return FailErrno("starting a program", errno);
  write_end = UniqueFd();
  Child child(pid, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
  if (!child.pidfd_.valid()) return FailErrno("watching a program (Linux 5.3 or later is needed)", errno);

  Fault fault;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), &fault, sizeof fault)) < 0 && errno == EINTR) {
  }
  if (got == 0) return child;  // closed by exec: the program runs
  const std::string program = EscapeBytes(options.arguments[0]);
  if (fault.step == nullptr || *fault.step == '\0')
    return FailErrno(fmt::format("cannot start {}", program), fault.error);
  return FailErrno(fmt::format("cannot start {}: {}", program, fault.step), fault.error);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)), ending_(other.ending_) {}

Child::~Child() {
  if (pid_ != 0) Kill();
}

std::optional<Ending> Child::WaitForEnd(Instant until, const Clock& clock) {
  while (!ending_) {
    pollfd ended{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&ended, 1, PollTimeout(until, clock));
    if (ready > 0) return Reap();
    if (ready == 0 && clock.Now() >= until) return std::nullopt;
  }
  return ending_;
}

void Child::Signal(int signal) {
  if (ending_) return;
  if (::kill(-pid_, signal) != 0) ::kill(pid_, signal);
}

Ending Child::Kill() {
  if (ending_) return *ending_;
  Signal(SIGKILL);
  return Reap();
}

// The group is killed before its leader is reaped: until then its number cannot come to mean another.
Ending Child::Reap() {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending_ = Ending{.exit_status = signal != 0 ? 128 + signal : WEXITSTATUS(status), .signal = signal};
  return *ending_;
}

}  // namespace weir::launch
