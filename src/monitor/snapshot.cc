#include "monitor/snapshot.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/thread.h"

namespace weir::monitor {
namespace {

// To look for the children of a process is to open a file for each of its threads. Trees of more threads than
// this are looked through at every tenth reading only; what a child has used is counted in full when it is
// found, or in its parent's account when that has waited for its end.
constexpr int kManyThreads = 100, kReadingsBetweenLooks = 10;

// A process that the kernel still lists until its parent asks for its end.
bool HasEnded(char state) { return state == 'Z' || state == 'X'; }

template <typename Parser>
auto ReadAndParse(const std::string& path, Parser parse) -> decltype(parse(std::string_view())) {
  const auto text = ReadSmall(path);
  if (!text) return std::nullopt;
  return parse(std::string_view(*text));
}

template <typename Parser>
auto ReadAndParse(KernelFile& file, Parser parse) -> decltype(parse(std::string_view())) {
  const auto text = file.Read();
  if (!text) return std::nullopt;
  return parse(*text);
}

// The interfaces of the network namespace that the first root is in: a container's own, or the machine's.
KernelFile NetworkFile(const SnapshotReader::Options& options) {
  CHECK(!options.roots.empty());
  KernelFile own(fmt::format("{}/{}/net/dev", options.proc, options.roots.front()));
  return own.Read() ? std::move(own) : KernelFile(options.proc + "/net/dev");
}

}  // namespace

std::vector<std::string> WholeDisks(const std::string& sys) {
  std::vector<std::string> disks;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(sys + "/block", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code ignored;
    if (std::filesystem::exists(entry->path() / "device", ignored)) disks.push_back(entry->path().filename());
  }
  return disks;
}

SnapshotReader::SnapshotReader(Options options)
    : options_(std::move(options)),
      disks_(WholeDisks(options_.sys)),
      stat_(options_.proc + "/stat"),
      meminfo_(options_.proc + "/meminfo"),
      network_(NetworkFile(options_)),
      diskstats_(options_.proc + "/diskstats"),
      cpu_pressure_(options_.proc + "/pressure/cpu"),
      memory_pressure_(options_.proc + "/pressure/memory"),
      io_pressure_(options_.proc + "/pressure/io") {
  for (const int root : options_.roots) known_.emplace(root, 0);
  const int root = options_.roots.front();
  const std::string folder = fmt::format("{}/{}", options_.proc, root);
  lists_children_ = ReadSmall(fmt::format("{}/task/{}/children", folder, root)).has_value();
  const auto mounts = ReadSmall(options_.proc + "/self/mountinfo"), group = ReadSmall(folder + "/cgroup");
  if (!mounts || !group) return;
  const Cgroup cgroup = FindCgroup(*mounts, *group);
  in_container_ = IsContainer(cgroup, ReadCgroupLimits(cgroup), options_.proc, root);
  cgroup_ = CgroupCounters(cgroup);
}

Snapshot SnapshotReader::Read(Instant now) {
  Snapshot snapshot{.at = now};
  snapshot.machine = ReadAndParse(stat_, ParseMachineStat);
  if (options_.scope == Scope::kTrees) {
    ReadTrees(snapshot);
  } else {
    ReadOne(snapshot);
    ReadEngineThreads(snapshot);
  }
  snapshot.memory = ReadAndParse(meminfo_, ParseMemoryInfo);
  snapshot.network = ReadAndParse(network_, ParseNetworkBytes);
  snapshot.disks =
      ReadAndParse(diskstats_, [this](std::string_view text) { return ParseDiskBytes(text, disks_); });
  snapshot.cpu_pressure = ReadAndParse(cpu_pressure_, ParsePressure);
  snapshot.memory_pressure = ReadAndParse(memory_pressure_, ParsePressure);
  snapshot.io_pressure = ReadAndParse(io_pressure_, ParsePressure);
  snapshot.cgroup = cgroup_.Read();
  return snapshot;
}

ProcessUse SnapshotReader::ToUse(const ProcessStat& stat, const std::string& folder) const {
  ProcessUse use{.pid = stat.pid, .start_ticks = stat.start_ticks, .parent = stat.parent};
  use.cpu = stat.cpu;
  use.reaped = stat.children_cpu;
  use.io = ReadAndParse(folder + "/io", ParseIo);
  if (HasEnded(stat.state)) return use;
  use.resident_bytes = stat.resident_bytes;
  use.threads = stat.threads;
  if (options_.peaks) use.peak_resident_bytes = ReadAndParse(folder + "/status", ParsePeakResident);
  return use;
}

void SnapshotReader::ReadOne(Snapshot& snapshot) {
  const std::string folder = fmt::format("{}/{}", options_.proc, options_.roots.front());
  if (const auto stat = ReadAndParse(folder + "/stat", ParseProcessStat)) {
    snapshot.processes.push_back(ToUse(*stat, folder));
  }
}

void SnapshotReader::ReadTrees(Snapshot& snapshot) {
  const bool looks = LooksForChildren(snapshot.machine);
  const std::vector<ProcessStat> all = looks && !lists_children_ ? ScanAll() : std::vector<ProcessStat>();
  std::vector<std::pair<int, uint64_t>> open(known_.begin(), known_.end());
  std::map<int, uint64_t> seen = std::exchange(known_, {});
  tree_threads_ = 0;
  while (!open.empty()) {
    const auto [pid, began] = open.back();
    open.pop_back();
    const std::string folder = fmt::format("{}/{}", options_.proc, pid);
    const auto stat = ReadAndParse(folder + "/stat", ParseProcessStat);
    if (!stat || (began != 0 && stat->start_ticks != began)) continue;  // it has ended
    known_.emplace(pid, stat->start_ticks);
    tree_threads_ += stat->threads;
    snapshot.processes.push_back(ToUse(*stat, folder));
    if (!looks) continue;
    for (const int child : ChildrenOf(pid, all)) {
      if (seen.emplace(child, 0).second) open.emplace_back(child, 0);
    }
  }
}

// The count of forks is read before the children are, so one that begins meanwhile shows at the next reading.
bool SnapshotReader::LooksForChildren(const std::optional<MachineStat>& machine) {
  auto forks = machine ? machine->forks : std::nullopt;
  if (forks && *forks <= 0) forks.reset();  // some sandboxes write 0 whatever happens
  if (forks && forks == forks_) return false;
  if (tree_threads_ > kManyThreads && ++passed_over_ < kReadingsBetweenLooks) return false;
  passed_over_ = 0;
  forks_ = forks;
  return true;
}

// By the lists of its threads, or, where the kernel has none, by the parents of `all` processes.
std::vector<int> SnapshotReader::ChildrenOf(int pid, const std::vector<ProcessStat>& all) const {
  std::vector<int> children;
  for (const ProcessStat& other : all) {
    if (other.parent == pid) children.push_back(other.pid);
  }
  if (!lists_children_) return children;
  const std::string tasks = fmt::format("{}/{}/task", options_.proc, pid);
  for (const int tid : NumberedEntries(tasks)) {
    const auto text = ReadSmall(fmt::format("{}/{}/children", tasks, tid)).value_or("");
    for (const std::string_view word : SplitWords(text)) {
      if (const auto child = ParseNumber(word)) children.push_back(static_cast<int>(*child));
    }
  }
  return children;
}

std::vector<ProcessStat> SnapshotReader::ScanAll() const {
  std::vector<ProcessStat> all;
  for (const int pid : NumberedEntries(options_.proc)) {
    auto stat = ReadAndParse(fmt::format("{}/{}/stat", options_.proc, pid), ParseProcessStat);
    if (stat) all.push_back(std::move(*stat));
  }
  return all;
}

// Keeps what is known of the threads that are still there.
void SnapshotReader::ListThreads(const std::string& tasks) {
  std::map<int, KnownThread> alive;
  for (const int tid : NumberedEntries(tasks)) {
    auto known = threads_.extract(tid);
    if (known.empty()) {
      alive.try_emplace(tid);
    } else {
      alive.insert(std::move(known));
    }
  }
  threads_ = std::move(alive);
}

void SnapshotReader::ReadEngineThreads(Snapshot& snapshot) {
  const std::string tasks = fmt::format("{}/{}/task", options_.proc, options_.roots.front());
  const int threads = snapshot.processes.empty() ? 0 : snapshot.processes.front().threads;
  const auto forks = snapshot.machine ? snapshot.machine->forks : std::nullopt;
  const bool same = forks && *forks > 0 && forks == forks_ && threads == listed_threads_;
  if (!same) ListThreads(tasks);
  forks_ = forks;
  listed_threads_ = threads;
  for (auto entry = threads_.begin(); entry != threads_.end();) {
    auto& [tid, thread] = *entry;
    if (thread.looks < 2) Look(thread, fmt::format("{}/{}", tasks, tid));
    const auto use = thread.cpu ? ReadThread(tid, thread) : std::nullopt;
    if (use) snapshot.engine_threads.push_back(*use);
    const bool has_ended = thread.cpu && !use;  // one that took its number is looked at the next time
    entry = has_ended ? threads_.erase(entry) : std::next(entry);
  }
}

std::optional<ThreadUse> SnapshotReader::ReadThread(int tid, KnownThread& thread) {
  const auto text = thread.cpu->Read();
  if (!text) return std::nullopt;
  if (thread.has_schedstat) {
    const auto exact = ParseSchedstat(*text);
    if (!exact) return std::nullopt;
    return ThreadUse{tid, thread.start_ticks, *exact};
  }
  const auto stat = ParseProcessStat(*text);
  if (!stat) return std::nullopt;
  return ThreadUse{tid, thread.start_ticks, stat->cpu};
}

void SnapshotReader::Look(KnownThread& thread, const std::string& folder) const {
  const auto stat = ReadAndParse(folder + "/stat", ParseProcessStat);
  if (!stat) return;
  thread.looks += 1;
  thread.start_ticks = stat->start_ticks;
  thread.cpu.reset();
  if (RoleOfThread(stat->name) != ThreadRole::kRecogniser) return;
  thread.cpu.emplace(folder + "/schedstat");
  const auto text = thread.cpu->Read();
  thread.has_schedstat = text && ParseSchedstat(*text);
  if (!thread.has_schedstat) thread.cpu.emplace(folder + "/stat");
}

}  // namespace weir::monitor
