#include "monitor/snapshot.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace weir::monitor {
namespace {

constexpr std::string_view kEngineThread = "engine";

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

ProcessUse ToUse(const ProcessStat& stat, const std::string& folder) {
  ProcessUse use{.pid = stat.pid, .start_ticks = stat.start_ticks, .parent = stat.parent};
  use.cpu = stat.cpu;
  use.reaped = stat.children_cpu;
  use.io = ReadAndParse(folder + "/io", ParseIo);
  if (!HasEnded(stat.state)) use.resident_bytes = stat.resident_bytes;
  return use;
}

}  // namespace

SnapshotReader::SnapshotReader(Options options)
    : options_(std::move(options)),
      stat_(options_.proc + "/stat"),
      meminfo_(options_.proc + "/meminfo"),
      network_(options_.proc + "/net/dev"),
      cpu_pressure_(options_.proc + "/pressure/cpu"),
      memory_pressure_(options_.proc + "/pressure/memory"),
      io_pressure_(options_.proc + "/pressure/io") {
  for (const int root : options_.roots) known_.emplace(root, 0);
  if (options_.roots.empty()) return;
  const int root = options_.roots.front();
  const std::string folder = fmt::format("{}/{}", options_.proc, root);
  lists_children_ = ReadSmall(fmt::format("{}/task/{}/children", folder, root)).has_value();
  const auto mounts = ReadSmall(options_.proc + "/self/mountinfo"), group = ReadSmall(folder + "/cgroup");
  if (!mounts || !group) return;
  cgroup_ = FindCgroup(*mounts, *group);
  in_container_ = IsContainer(cgroup_, ReadCgroupLimits(cgroup_), options_.proc, root);
}

Snapshot SnapshotReader::Read(Instant now) {
  Snapshot snapshot{.at = now};
  snapshot.machine = ReadAndParse(stat_, ParseMachineStat);
  ReadTree(snapshot);
  snapshot.memory = ReadAndParse(meminfo_, ParseMemoryInfo);
  snapshot.network = ReadAndParse(network_, ParseNetworkBytes);
  snapshot.cpu_pressure = ReadAndParse(cpu_pressure_, ParsePressure);
  snapshot.memory_pressure = ReadAndParse(memory_pressure_, ParsePressure);
  snapshot.io_pressure = ReadAndParse(io_pressure_, ParsePressure);
  snapshot.cgroup = ReadCgroupUsage(cgroup_);
  return snapshot;
}

void SnapshotReader::ReadTree(Snapshot& snapshot) {
  const std::vector<ProcessStat> all = lists_children_ ? std::vector<ProcessStat>() : ScanAll();
  std::vector<std::pair<int, uint64_t>> open(known_.begin(), known_.end());
  std::map<int, uint64_t> seen = std::exchange(known_, {});
  while (!open.empty()) {
    const auto [pid, began] = open.back();
    open.pop_back();
    const std::string folder = fmt::format("{}/{}", options_.proc, pid);
    const auto stat = ReadAndParse(folder + "/stat", ParseProcessStat);
    if (!stat || (began != 0 && stat->start_ticks != began)) continue;  // it has ended
    known_.emplace(pid, stat->start_ticks);
    snapshot.processes.push_back(ToUse(*stat, folder));
    std::vector<int> children;
    ReadThreads(snapshot, pid, children);
    for (const ProcessStat& other : all) {
      if (other.parent == pid) children.push_back(other.pid);
    }
    for (const int child : children) {
      if (seen.emplace(child, 0).second) open.emplace_back(child, 0);
    }
  }
}

void SnapshotReader::ReadThreads(Snapshot& snapshot, int pid, std::vector<int>& children) {
  const bool look_for_engine = options_.engine_threads && pid == options_.roots.front();
  if (!look_for_engine && !lists_children_) return;
  const std::string tasks = fmt::format("{}/{}/task", options_.proc, pid);
  for (const int tid : NumberedEntries(tasks)) {
    const std::string folder = fmt::format("{}/{}", tasks, tid);
    if (lists_children_) {
      const auto text = ReadSmall(folder + "/children").value_or("");
      for (const std::string_view word : SplitWords(text)) {
        if (const auto child = ParseNumber(word)) children.push_back(static_cast<int>(*child));
      }
    }
    if (!look_for_engine) continue;
    const auto stat = ReadAndParse(folder + "/stat", ParseProcessStat);
    if (!stat || !stat->name.starts_with(kEngineThread)) continue;
    const auto exact = ReadAndParse(folder + "/schedstat", ParseSchedstat);
    snapshot.engine_threads.push_back({tid, stat->start_ticks, exact.value_or(stat->cpu)});
  }
}

std::vector<ProcessStat> SnapshotReader::ScanAll() const {
  std::vector<ProcessStat> all;
  for (const int pid : NumberedEntries(options_.proc)) {
    auto stat = ReadAndParse(fmt::format("{}/{}/stat", options_.proc, pid), ParseProcessStat);
    if (stat) all.push_back(std::move(*stat));
  }
  return all;
}

}  // namespace weir::monitor
