// The kernel's text files as values: pure functions of the text, and the reading of it apart. A text that is
// not as proc(5) and the kernel's own pages (accounting/psi, admin-guide/cgroup-v1 and v2) describe gives
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace weir::monitor {

// /proc/PID/stat and /proc/PID/task/TID/stat. The kernel tells CPU time in ticks of 10 ms.
struct ProcessStat {
  int pid = 0;
  std::string name;
  char state = '?';
  int parent = 0;
  Duration cpu{};           // user and system
  Duration children_cpu{};  // of children that ended and were waited for, and theirs
  int threads = 0;
  uint64_t start_ticks = 0;  // since the machine started; with `pid` it names one process for good
  int64_t resident_bytes = 0;
};
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

// /proc/stat: all CPUs together. `busy` leaves idle, I/O wait and steal out.
struct MachineStat {
  Duration busy{};
  Duration idle{};
  Duration steal{};
  std::optional<int64_t> context_switches;  // so far
  std::optional<int64_t> forks;             // processes and threads begun so far, in all containers
};
std::optional<MachineStat> ParseMachineStat(std::string_view text);

// /proc/meminfo.
struct MemoryInfo {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;
};
std::optional<MemoryInfo> ParseMemoryInfo(std::string_view text);

// /proc/PID/io: bytes that really went to or came from storage.
struct IoBytes {
  int64_t read = 0;
  int64_t written = 0;
};
std::optional<IoBytes> ParseIo(std::string_view text);

// /proc/net/dev: all interfaces but lo. A packet that crosses a bridge counts on each interface it passes.
struct NetworkBytes {
  int64_t received = 0;
  int64_t sent = 0;
};
std::optional<NetworkBytes> ParseNetworkBytes(std::string_view text);

// /proc/diskstats: the sum over the disks named, which must be whole ones (a partition's bytes are its disk's
// as well). The kernel counts in sectors of 512 bytes, whatever the disk's own are (admin-guide/iostats).
// Nothing where none of the disks is in it.
struct DiskBytes {
  int64_t read = 0;
  int64_t written = 0;
};
std::optional<DiskBytes> ParseDiskBytes(std::string_view text, const std::vector<std::string>& disks);

// /proc/PID/status: the most memory that this program had resident so far (VmHWM). What was in memory before
// it took the process over (exec) is not in it. Nothing for a process that has ended.
std::optional<int64_t> ParsePeakResident(std::string_view text);

// /proc/pressure/*: how long some task stood still for want of the resource, since the machine started.
std::optional<Duration> ParsePressure(std::string_view text);

// /proc/PID/task/TID/schedstat: CPU time of the thread, exact to the scheduler's last look (a tick at most).
std::optional<Duration> ParseSchedstat(std::string_view text);

// The number after "KEY " or "KEY:" at the start of a line, as in memory.stat, cpu.stat and meminfo (without
// its unit).
std::optional<int64_t> FindNumber(std::string_view text, std::string_view key);

// The whole of `text` as a number, blanks around it apart.
std::optional<int64_t> ParseNumber(std::string_view text);

std::vector<std::string_view> SplitWords(std::string_view text);  // at blanks and line ends
std::vector<std::string_view> SplitLines(std::string_view text);  // without their ends, empty ones included

// A small kernel file, whole; nothing when it cannot be opened or read.
std::optional<std::string> ReadSmall(const std::string& path);

// The numbers that name entries of a folder such as /proc or /proc/self/task; empty when it cannot be read.
std::vector<int> NumberedEntries(const std::string& folder);

// A kernel file kept open, for one that is read again and again: a read at offset 0 makes it afresh. One
// thread.
class KernelFile {
 public:
  explicit KernelFile(const std::string& path);
  std::optional<std::string_view> Read();  // until the next Read; nothing when it cannot be read

 private:
  UniqueFd fd_;
  std::string buffer_;
};

}  // namespace weir::monitor
