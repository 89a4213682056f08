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
  std::optional<Duration> device_busy;  // of the accelerator, so far
  Duration observer{};                  // CPU time of the monitor's own thread
};

// Reads snapshots. One thread at a time.
class SnapshotReader {
 public:
  enum class Scope {
    kTrees,        // the roots and all that come of them
    kEngineApart,  // the first root alone, with those of its threads whose name begins with "engine"
  };
  struct Options {
    std::string proc = "/proc";
    std::vector<int> roots;
    Scope scope = Scope::kTrees;
  };
  explicit SnapshotReader(Options options);

  Snapshot Read(Instant now);
  bool in_container() const { return in_container_; }  // the first root

 private:
  // A thread keeps the name of the one that started it until it takes its own, which it does at once: what it
  // is called the second time it is seen is what it is.
  struct KnownThread {
    int looks = 0;
    uint64_t start_ticks = 0;
    bool has_schedstat = false;
    std::optional<KernelFile>
        cpu;  // of an engine thread: open, so that its number cannot come to mean another
  };

  void ReadTrees(Snapshot& snapshot);
  std::vector<int> ChildrenOf(int pid, const std::vector<ProcessStat>& all) const;
  std::vector<ProcessStat> ScanAll() const;
  void ReadOne(Snapshot& snapshot);
  void ReadEngineThreads(Snapshot& snapshot);
  void Look(KnownThread& thread, const std::string& folder) const;

  Options options_;
  bool in_container_ = false;
  bool lists_children_ = false;  // the kernel has /proc/PID/task/TID/children
  // The trees' processes at the last reading and when each began (0: not read yet). One that loses its parent
  // stays ours; one that took the number of another does not become so.
  std::map<int, uint64_t> known_;
  std::map<int, KnownThread> threads_;
  CgroupCounters cgroup_;
  KernelFile stat_, meminfo_, network_, cpu_pressure_, memory_pressure_, io_pressure_;
};

}  // namespace weir::monitor
