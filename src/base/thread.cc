#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

namespace weir {
namespace {

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

}  // namespace weir
