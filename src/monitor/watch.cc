#include "monitor/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/file.h"

namespace weir::monitor {
namespace {

Result<std::vector<UniqueFd>> OpenProcesses(const std::vector<int>& pids) {
  std::vector<UniqueFd> processes;
  for (const int pid : pids) {
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process.valid()) {
      // A number of a thread, or below 1, is none of a process.
      const bool missing = errno == ESRCH || errno == EINVAL || errno == ENOENT;
      return missing ? Fail(ErrorCode::kNotFound, fmt::format("monitor: there is no process {}", pid))
                     : FailErrno(fmt::format("process {} (Linux 5.3 or later is needed)", pid), errno);
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

// Until every one of `processes` or the event `stopped` can be read.
Status WaitForAll(const std::vector<UniqueFd>& processes, const UniqueFd& stopped) {
  std::vector<pollfd> waited{{stopped.get(), POLLIN, 0}};
  for (const UniqueFd& process : processes) waited.push_back({process.get(), POLLIN, 0});
  while (waited.size() > 1) {
    if (::poll(waited.data(), waited.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return FailErrno("waiting for the processes", errno);
    }
    if (waited.front().revents != 0) return {};
    std::erase_if(waited, [](const pollfd& one) { return one.revents != 0; });
  }
  return {};
}

}  // namespace

Result<Resources> WatchUntilTheyEnd(const Clock& clock, const ResourceMonitor::Options& options,
                                    const std::stop_token& stop) {
  if (options.processes.empty()) return Fail(ErrorCode::kInvalidArgument, "monitor: no process to watch");
  const std::vector<UniqueFd> processes = TRY(OpenProcesses(options.processes));
  const UniqueFd stopped(::eventfd(0, EFD_CLOEXEC));
  if (!stopped.valid()) return FailErrno("an event", errno);
  const auto monitor = TRY(ResourceMonitor::Start(clock, options));
  {
    const std::stop_callback wake(stop, [&] { ::eventfd_write(stopped.get(), 1); });
    TRY_STATUS(WaitForAll(processes, stopped));
  }
  return monitor->Stop();
}

}  // namespace weir::monitor
