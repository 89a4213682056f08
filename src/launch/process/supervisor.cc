#include "launch/process/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/thread.h"
#include "launch/process/orphans.h"
#include "launch/process/program.h"
#include "launch/supervisor_script.h"

namespace weir::launch {
namespace {

struct Line {
  UniqueFd ours, keepers;
};

// A pair of sockets and not a pipe: writing to a pipe that nobody reads any more would kill this process.
Result<Line> OpenLine() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return FailErrno("a socket pair", errno);
  return Line{.ours = UniqueFd(ends[0]), .keepers = UniqueFd(ends[1])};
}

// A shell tells of a signal as of an exit status above 128.
Ending FromShell(Ending ending) {
  const int signal = ending.exit_status - 128;
  if (ending.signal == 0 && signal > 0 && signal <= SIGRTMAX) ending.signal = signal;
  return ending;
}

}  // namespace

std::vector<std::string> KeeperArguments(const Kept& kept, const std::string& shell) {
  std::vector<std::string> arguments{shell,
                                     "-c",
                                     kSupervisorScript,
                                     "weir-supervisor",
                                     kept.mark,
                                     fmt::format("{}", kept.silence / 1s),
                                     kept.working_folder};
  arguments.insert(arguments.end(), kept.environment.begin(), kept.environment.end());
  arguments.insert(arguments.end(), kept.command.begin(), kept.command.end());
  return arguments;
}

Result<std::unique_ptr<KeptProgram>> KeptProgram::Start(Options options, SpawnOptions spawn,
                                                        const Clock& clock) {
  Line line = TRY(OpenLine());
  spawn.input = line.keepers.get();
  auto front = TRY(Program::Start(options.name, options.address, std::move(spawn), clock));
  return std::unique_ptr<KeptProgram>(
      new KeptProgram(std::move(options), std::move(front), std::move(line.ours), clock));
}

KeptProgram::KeptProgram(Options options, std::unique_ptr<Program> front, UniqueFd line, const Clock& clock)
    : options_(std::move(options)), clock_(clock), front_(std::move(front)), line_(std::move(line)) {
  if (options_.beat > Duration::zero())
    beat_ = StartThread("launch-beat", [this](const std::stop_token&) { Beat(); });
}

KeptProgram::~KeptProgram() { Stop(Duration::zero()); }

int KeptProgram::pid() const {
  const int front = front_->pid();
  return options_.mark.empty() ? front : ChildWith(options_.mark, front).value_or(front);
}

std::string KeptProgram::LastWords() const { return front_->LastWords(); }

std::optional<Ending> KeptProgram::WaitForEnd(Instant until) {
  const auto ending = front_->WaitForEnd(until);
  if (!ending) return std::nullopt;
  return FromShell(*ending);
}

void KeptProgram::Say(const std::string& word) {
  MutexLock lock(mutex_);
  const std::string text = word + "\n";
  if (line_.valid()) (void)::send(line_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void KeptProgram::Beat() {
  while (true) {
    Say("");
    const Instant next = clock_.Now() + options_.beat;
    MutexLock lock(mutex_);
    while (line_.valid() && clock_.Now() < next) changed_.WaitUntil(mutex_, next);
    if (!line_.valid()) return;
  }
}

// The supervisor kills when its input ends; killed itself, it could not.
Ending KeptProgram::Stop(Duration patience) {
  std::optional<Ending> ending = WaitForEnd(clock_.Now());
  if (!ending && patience > Duration::zero()) {
    Say(::sigabbrev_np(options_.stop_signal));
    ending = WaitForEnd(clock_.Now() + patience);
  }
  {
    MutexLock lock(mutex_);
    line_ = UniqueFd();
  }
  changed_.NotifyAll();
  if (!ending) ending = WaitForEnd(clock_.Now() + 10s);
  return ending ? *ending : front_->Stop(Duration::zero());
}

}  // namespace weir::launch
