// Control groups, version 1, version 2, and both at once (hybrid: a v2 tree beside v1 controllers): v2 names
// are read first, else v1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "monitor/proc.h"

namespace weir::monitor {

// One process's group in one hierarchy, as this process sees it.
struct CgroupPlace {
  std::string mount;  // where the hierarchy is mounted; empty: it is not
  std::string path;   // of the group under it, "" at the mount itself, otherwise "/..."
};

struct Cgroup {
  CgroupPlace unified;          // v2
  CgroupPlace cpu, memory;      // v1 controllers
  bool mounted_inside = false;  // what is mounted is not the hierarchy's root: this is a container

  std::string version() const;  // "v2", "v1", "hybrid", or "none"
};

// From /proc/self/mountinfo and /proc/PID/cgroup.
Cgroup FindCgroup(std::string_view mountinfo, std::string_view cgroup);

// The least limits of the group and the groups above it.
struct CgroupLimits {
  std::optional<double> cpus;  // quota / period
  std::optional<int64_t>
      memory_bytes;  // absent also where the limit is above the kernel's own "no limit" (2^62)
};
CgroupLimits ReadCgroupLimits(const Cgroup& cgroup);

struct CgroupUsage {
  std::optional<int64_t> memory_bytes;  // without page cache that can be dropped at once (inactive_file)
  std::optional<Duration> throttled;    // how long the CPU quota held the group back, so far
};

// Reads a group's usage again and again: keeps its files open. One thread at a time.
class CgroupCounters {
 public:
  CgroupCounters() = default;  // of no group: all absent
  explicit CgroupCounters(const Cgroup& cgroup);
  CgroupUsage Read();

 private:
  std::optional<KernelFile> memory_, memory_stat_, cpu_stat_;
  bool v2_memory_ = false;
};

// Whether the group stands for a container: `proc` is /proc, `process` a process of the group. True where the
// memory is limited, where the process has a cgroup namespace of its own, or where only a part of a hierarchy
// is mounted.
bool IsContainer(const Cgroup& cgroup, const CgroupLimits& limits, const std::string& proc, int process);

}  // namespace weir::monitor
