// The values of all counters at one moment, and the reading of them.
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
  Duration cpu{};                              // its own threads'
  Duration reaped{};                           // of children that it waited for
  std::optional<IoBytes> io;                   // with that of children that it waited for
  std::optional<int64_t> resident_bytes;       // absent once it has ended
  std::optional<int64_t> peak_resident_bytes;  // so far; only where the reader was asked for it
  int threads = 0;                             // 0 once it has ended
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
  std::optional<NetworkBytes> network;  // of the network namespace that the first root is in
  std::optional<DiskBytes> disks;       // the machine's
  std::optional<Duration> cpu_pressure, memory_pressure, io_pressure;
  CgroupUsage cgroup;
  std::optional<Duration> device_busy;  // of the accelerator, so far
  Duration observer{};                  // CPU time of the monitor's own thread, from its beginning
};

// The names of the machine's disks: block devices with hardware behind them, without their partitions and
// without what is made of them (RAID, LVM, loop devices), whose bytes would count twice. `sys` is /sys.
std::vector<std::string> WholeDisks(const std::string& sys);

// Reads snapshots. One thread at a time.
class SnapshotReader {
 public:
  enum class Scope {
    kTrees,        // the roots and all that come of them
    kEngineApart,  // the first root alone, with those of its threads whose name begins with "engine"
  };
  struct Options {
    std::string proc = "/proc";
    std::string sys = "/sys";
    std::vector<int> roots;
    Scope scope = Scope::kTrees;
    bool peaks = false;  // read each process's peak_resident_bytes too (another file to open for each)
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

  ProcessUse ToUse(const ProcessStat& stat, const std::string& folder) const;
  void ReadTrees(Snapshot& snapshot);
  bool LooksForChildren(const std::optional<MachineStat>& machine);
  std::vector<int> ChildrenOf(int pid, const std::vector<ProcessStat>& all) const;
  std::vector<ProcessStat> ScanAll() const;
  void ReadOne(Snapshot& snapshot);
  void ListThreads(const std::string& tasks);
  void ReadEngineThreads(Snapshot& snapshot);
  void Look(KnownThread& thread, const std::string& folder) const;
  static std::optional<ThreadUse> ReadThread(int tid, KnownThread& thread);

  Options options_;
  std::vector<std::string> disks_;
  bool in_container_ = false;
  bool lists_children_ = false;  // the kernel has /proc/PID/task/TID/children
  // The trees' processes at the last reading and when each began (0: not read yet). One that loses its parent
  // stays ours; one that took the number of another does not become so.
  std::map<int, uint64_t> known_;
  std::map<int, KnownThread> threads_;
  // The machine's count of forks and the process's threads at the time when processes and threads were last
  // looked for: where nothing was begun since, there is nothing to find.
  std::optional<int64_t> forks_;
  int listed_threads_ = 0;
  int tree_threads_ = 0;  // of the processes watched, at the last reading
  int passed_over_ = 0;   // readings of a large tree since its children were last looked for
  CgroupCounters cgroup_;
  KernelFile stat_, meminfo_, network_, diskstats_, cpu_pressure_, memory_pressure_, io_pressure_;
};

}  // namespace weir::monitor
