// What the counters stood at in one moment, and the reading of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/cgroup.h"
#include "monitor/proc.h"

namespace weir::monitor {

struct ProcessUse {
  int pid = 0;
  uint64_t start_ticks = 0;
  int parent = 0;
  Duration cpu{};                         // its own threads'
  Duration reaped{};                      // of children that it waited for
  std::optional<IoBytes> io;              // with that of children that it waited for
  std::optional<int64_t> resident_bytes;  // absent once it has ended
};

struct ThreadUse {
  int tid = 0;
  uint64_t start_ticks = 0;
  Duration cpu{};
};

struct Snapshot {
  Instant at;
  std::vector<ProcessUse> processes;  // the trees watched
  std::vector<ThreadUse> engine_threads;
  std::optional<MachineStat> machine;
  std::optional<MemoryInfo> memory;
  std::optional<NetworkBytes> network;
  std::optional<Duration> cpu_pressure, memory_pressure, io_pressure;
  CgroupUsage cgroup;
  Duration observer{};  // CPU time of the monitor's own thread
};

// Reads snapshots. One thread at a time.
class SnapshotReader {
 public:
  struct Options {
    std::string proc = "/proc";
    std::vector<int> roots;       // the processes whose trees are read
    bool engine_threads = false;  // also the threads of roots[0] whose name begins with "engine"
  };
  explicit SnapshotReader(Options options);

  Snapshot Read(Instant now);
  bool in_container() const { return in_container_; }

 private:
  void ReadTree(Snapshot& snapshot);
  void ReadThreads(Snapshot& snapshot, int pid, std::vector<int>& found);
  std::vector<ProcessStat> ScanAll() const;

  Options options_;
  Cgroup cgroup_;
  bool in_container_ = false;
  bool lists_children_ = false;  // the kernel has /proc/PID/task/TID/children
  // The trees' processes at the last reading and when each began (0: not read yet). One that loses its parent
  // stays ours; one that took the number of another does not become so.
  std::map<int, uint64_t> known_;
  KernelFile stat_, meminfo_, network_, cpu_pressure_, memory_pressure_, io_pressure_;
};

}  // namespace weir::monitor
