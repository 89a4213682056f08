// The facts of a host, as read; judged in host_findings.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "monitor/gpu.h"

namespace weir::probe {

struct EngineFacts {
  std::string name;
  std::string version;  // empty: it is not here
  std::string problem;  // then why, with what to do
};

struct CpuFacts {
  std::string model;
  std::vector<std::string> instruction_sets;  // of those that inference libraries choose by
  int logical = 1, physical = 1, usable = 1;
  std::optional<std::string> governor;
  std::optional<bool> turbo;
  bool virtual_machine = false;
  std::string machine;  // what firmware or hypervisor call it; empty where they do not
};

struct MemoryFacts {
  int64_t total_bytes = 0, available_bytes = 0;
  int64_t swap_total_bytes = 0, swap_used_bytes = 0;
  int64_t page_bytes = 4096;
  std::string transparent_huge_pages;  // "always", "madvise", "never"; empty: the kernel has none
  int64_t reserved_huge_pages = 0;
  int numa_nodes = 1;
};

struct CgroupFacts {
  std::string version;  // "v1", "v2", "hybrid", "none"
  std::optional<double> cpus;
  std::optional<int64_t> memory_bytes;
  bool container = false;
};

struct LimitFacts {
  std::optional<uint64_t> open_files;          // soft limits; absent: unlimited
  std::optional<uint64_t> open_files_at_most;  // hard
  std::optional<uint64_t> locked_memory_bytes;
};

struct TimerFacts {
  std::string clock_source;
  Duration resolution{};  // the least step seen between two readings
  Duration read_cost{};
  Duration overshoot_median{}, overshoot_max{};  // of a sleep of 500 us
  int sleeps = 0;
};

// Activity of the machine while this process only watched.
struct LoadFacts {
  std::optional<double> foreign_cpus;          // cores that other processes kept busy
  std::optional<double> steal_percent;         // now
  std::optional<double> steal_percent_so_far;  // since the machine started
  std::optional<double> cpu_pressure_percent, memory_pressure_percent, io_pressure_percent;
  Duration watched{};
};

struct GpuFacts {
  monitor::GpuDevice device;
  monitor::GpuSample now;
  std::optional<int> cuda_index;  // N of cuda:N; absent where CUDA does not see it
};
struct GpusFacts {
  bool library = false;  // NVML is here
  std::string driver;
  std::string problem;       // NVML's own words where it cannot be used
  std::string cuda_version;  // the newest that the driver serves; empty where cuda_problem says why
  std::string cuda_problem;
  std::vector<GpuFacts> gpus;
};

struct NetworkFacts {
  std::string name;
  bool up = false;
  std::optional<int64_t> megabits_per_s;  // absent: the driver does not tell
  int64_t mtu = 0;
};

struct DiskFacts {
  std::string folder;
  std::string filesystem;  // "ext4", "overlay", "nfs4" ...
  std::string device;      // empty where no block device stands behind it
  std::optional<bool> rotational;
  std::string scheduler;  // the one in force
};

struct ToolFacts {
  std::vector<std::string> containers;  // of podman, docker: those in PATH
  std::optional<int64_t> perf_event_paranoid;
  bool hardware_counters = false;
};

struct HostFacts {
  std::vector<EngineFacts> engines;
  CpuFacts cpu;
  MemoryFacts memory;
  CgroupFacts cgroup;
  LimitFacts limits;
  TimerFacts timer;
  LoadFacts load;
  GpusFacts gpus;
  std::vector<NetworkFacts> networks;
  DiskFacts disk;
  ToolFacts tools;
};

}  // namespace weir::probe
