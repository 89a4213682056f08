#include "trial/cpu_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "monitor/cgroup.h"

namespace weir::trial {
namespace {

// Kernel files want one write, and no rename.
Status WriteKernelFile(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FailErrno(path, errno);
  return {};
}

// Groups under which one may be made: the top of the hierarchy, then this process's own.
struct Candidate {
  std::string parent;
  bool is_v2 = false;
};
std::vector<Candidate> Candidates() {
  const auto mounts = monitor::ReadSmall("/proc/self/mountinfo"),
             groups = monitor::ReadSmall("/proc/self/cgroup");
  const monitor::Cgroup cgroup = monitor::FindCgroup(mounts.value_or(""), groups.value_or(""));
  std::vector<Candidate> candidates;
  for (const auto& [place, is_v2] : {std::pair(cgroup.cpu, false), std::pair(cgroup.unified, true)}) {
    if (place.mount.empty()) continue;
    candidates.push_back({place.mount, is_v2});
    if (!place.path.empty()) candidates.push_back({place.mount + place.path, is_v2});
  }
  return candidates;
}

Status SetQuota(const std::string& folder, bool is_v2, double cores) {
  const auto quota_us = static_cast<int64_t>(cores * CpuLimit::kPeriodUs);
  const auto period_us = static_cast<int64_t>(CpuLimit::kPeriodUs);
  if (is_v2) return WriteKernelFile(folder + "/cpu.max", fmt::format("{} {}", quota_us, period_us));
  TRY_STATUS(WriteKernelFile(folder + "/cpu.cfs_period_us", fmt::format("{}", period_us)));
  return WriteKernelFile(folder + "/cpu.cfs_quota_us", fmt::format("{}", quota_us));
}

}  // namespace

Result<std::unique_ptr<CpuLimit>> CpuLimit::Make(const std::string& name, double cores) {
  static std::atomic<int> last = 0;
  const std::string own = fmt::format("/weir-{}-{}-{}", name, ::getpid(), ++last);
  std::string why = "no control groups are mounted";
  for (const auto& [parent, is_v2] : Candidates()) {
    // The controller may be on already; the write fails where processes are in the group.
    if (is_v2) (void)WriteKernelFile(parent + "/cgroup.subtree_control", "+cpu");
    const std::string folder = parent + own;
    if (::mkdir(folder.c_str(), 0755) != 0) {
      why = fmt::format("{}: {}", folder, std::strerror(errno));
      continue;
    }
    std::unique_ptr<CpuLimit> limit(new CpuLimit(folder, parent));
    const Status set = SetQuota(folder, is_v2, cores);
    if (set) return limit;
    why = set.error().message;
  }
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("a CPU limit wants a control group of its own ({}): run the study as root, or under "
                  "systemd-run --user --scope -p Delegate=yes",
                  why));
}

CpuLimit::~CpuLimit() {
  for (int i = 0; i < 50 && ::rmdir(folder_.c_str()) != 0 && errno == EBUSY; ++i) {
    std::istringstream left(monitor::ReadSmall(folder_ + "/cgroup.procs").value_or(""));
    for (std::string pid; left >> pid;) (void)WriteKernelFile(parent_ + "/cgroup.procs", pid);
  }
}

Status CpuLimit::Add(int pid) { return WriteKernelFile(folder_ + "/cgroup.procs", fmt::format("{}", pid)); }

}  // namespace weir::trial
