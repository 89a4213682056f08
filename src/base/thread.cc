#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace weir {
namespace {

constexpr std::string_view kRecogniserName = "engine";

// The quota in CPUs of the control group at `folder`, v2 name first.
std::optional<double> QuotaAt(const std::string& folder) {
  if (std::ifstream max(folder + "/cpu.max"); max) {
    std::string quota;
    double period = 0;
    if (max >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
    return std::nullopt;
  }
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

// The least quota of this process's group and the groups above it.
std::optional<double> CgroupQuota() {
  std::optional<double> least;
  const auto take = [&](std::optional<double> quota) {
    if (quota && (!least || *quota < *least)) least = quota;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    std::string path = line.substr(second + 1);
    while (true) {
      take(QuotaAt(root + path));
      if (path.empty() || path == "/") break;
      path.erase(path.rfind('/'));
    }
    take(QuotaAt(root));  // inside a container the path of the host is not there
  }
  return least;
}

}  // namespace

ThreadRole RoleOfThread(std::string_view kernel_name) {
  return kernel_name.starts_with(kRecogniserName) ? ThreadRole::kRecogniser : ThreadRole::kApplication;
}

std::jthread StartThread(ThreadRole role, const std::string& name,
                         std::move_only_function<void(std::stop_token)> body) {
  if (role == ThreadRole::kApplication) return StartThread(name, std::move(body));
  return StartThread(std::string(kRecogniserName) + "-" + name, std::move(body));
}

std::jthread StartThread(const std::string& name, std::move_only_function<void(std::stop_token)> body) {
  return std::jthread([name = name.substr(0, 15), body = std::move(body)](std::stop_token stop) mutable {
    pthread_setname_np(pthread_self(), name.c_str());
    body(std::move(stop));
  });
}

double CpuAllowance() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  double cpus = std::max(1U, std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cpus = CPU_COUNT(&mask);
  return std::min(cpus, CgroupQuota().value_or(cpus));
}

int UsableCpus() { return std::max(1, static_cast<int>(std::ceil(CpuAllowance()))); }

std::optional<Status> RunUntil(const std::stop_token& stop, const std::string& name,
                               std::function<Status()> work) {
  constexpr Duration kGrace = 1s;
  struct Ended {
    Mutex mutex;
    CondVar changed;
    std::optional<Status> status GUARDED_BY(mutex);
  };
  const auto ended = std::make_shared<Ended>();
  std::jthread thread = StartThread(name, [ended, work = std::move(work)](const std::stop_token&) {
    const Status status = work();
    MutexLock lock(ended->mutex);
    ended->status = status;
    ended->changed.NotifyAll();
  });
  const std::stop_callback on_stop(stop, [&ended] {
    MutexLock lock(ended->mutex);
    ended->changed.NotifyAll();
  });
  const SteadyClock clock;
  MutexLock lock(ended->mutex);
  while (!ended->status && !stop.stop_requested()) ended->changed.Wait(ended->mutex);
  const Instant until = clock.Now() + kGrace;
  while (!ended->status && ended->changed.WaitUntil(ended->mutex, until)) {
  }
  if (!ended->status) thread.detach();
  return ended->status;
}

}  // namespace weir
