#include "probe/host_reader.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "base/thread.h"
#include "infer/choices.h"
#include "infer/engine.h"
#include "monitor/cgroup.h"
#include "monitor/proc.h"
#include "record/provenance.h"

namespace weir::probe {
namespace {

using monitor::FindNumber;
using monitor::ParseNumber;
using monitor::ReadSmall;

// First in the kernel's words, then in everybody's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kInstructionSets = {{
    {"avx", "avx"},
    {"avx2", "avx2"},
    {"fma", "fma"},
    {"f16c", "f16c"},
    {"avx512f", "avx512f"},
    {"avx512_vnni", "avx512_vnni"},
    {"avx_vnni", "avx_vnni"},
    {"avx512_bf16", "avx512_bf16"},
    {"avx512_fp16", "avx512_fp16"},
    {"amx_tile", "amx"},
    {"amx_int8", "amx_int8"},
    {"amx_bf16", "amx_bf16"},
    {"asimd", "neon"},
    {"asimddp", "neon_dot"},
    {"sve", "sve"},
    {"bf16", "bf16"},
}};

std::string Line(const std::string& path) {
  const std::string text = ReadSmall(path).value_or("");
  return text.substr(0, text.find('\n'));
}

std::optional<int64_t> Number(const std::string& path) {
  const auto text = ReadSmall(path);
  return text ? ParseNumber(*text) : std::nullopt;
}

std::vector<std::string> Entries(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// "cpu12" of a folder of CPUs or "node1" of one of nodes.
bool IsNumbered(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

// The words of the line that tells what the CPU can do: "flags" on x86, "Features" on ARM.
std::vector<std::string_view> CpuFlags(std::string_view cpuinfo) {
  for (const std::string_view line : monitor::SplitLines(cpuinfo)) {
    const size_t colon = line.find(':');
    const bool here = line.starts_with("flags\t") || line.starts_with("Features\t");
    if (here && colon != std::string_view::npos) return monitor::SplitWords(line.substr(colon + 1));
  }
  return {};
}

std::optional<bool> ReadTurbo(const std::string& cpus) {
  if (const auto off = Number(cpus + "/intel_pstate/no_turbo")) return *off == 0;
  if (const auto boost = Number(cpus + "/cpufreq/boost")) return *boost != 0;
  return std::nullopt;
}

bool IsInPath(std::string_view name, std::string_view path) {
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    const std::string file = fmt::format("{}/{}", path.substr(0, end), name);
    if (end > 0 && ::access(file.c_str(), X_OK) == 0) return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

}  // namespace

std::vector<std::string> ParseInstructionSets(std::string_view cpuinfo) {
  const auto flags = CpuFlags(cpuinfo);
  std::vector<std::string> sets;
  for (const auto& [kernel_name, name] : kInstructionSets) {
    if (std::ranges::find(flags, kernel_name) != flags.end()) sets.emplace_back(name);
  }
  return sets;
}

std::string ChosenOf(std::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

std::string FindFilesystem(std::string_view mountinfo, std::string_view device) {
  std::string last;  // a later mount of the same device covers the earlier
  for (const std::string_view line : monitor::SplitLines(mountinfo)) {
    const auto words = monitor::SplitWords(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() > 2 && words[2] == device && words.end() - dash > 1) last = dash[1];
  }
  return last;
}

CpuFacts ReadCpu(const HostRoots& roots) {
  const std::string cpuinfo = ReadSmall(roots.proc + "/cpuinfo").value_or("");
  const std::string cpus = roots.sys + "/devices/system/cpu";
  CpuFacts facts;
  facts.model = record::ParseCpuModel(cpuinfo).value_or("CPU of unknown model");
  facts.instruction_sets = ParseInstructionSets(cpuinfo);
  std::set<std::string> cores;
  int listed = 0;
  for (const std::string& name : Entries(cpus)) {
    if (!IsNumbered(name, "cpu")) continue;
    const std::string siblings = Line(fmt::format("{}/{}/topology/thread_siblings_list", cpus, name));
    if (siblings.empty()) continue;  // switched off
    ++listed;
    cores.insert(siblings);
  }
  facts.logical = listed > 0 ? listed : std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1);
  facts.physical = listed > 0 ? static_cast<int>(cores.size()) : facts.logical;
  facts.usable = UsableCpus();
  if (const std::string governor = Line(cpus + "/cpu0/cpufreq/scaling_governor"); !governor.empty()) {
    facts.governor = governor;
  }
  facts.turbo = ReadTurbo(cpus);
  const auto flags = CpuFlags(cpuinfo);
  facts.virtual_machine = std::ranges::find(flags, "hypervisor") != flags.end();
  facts.machine = Line(roots.sys + "/class/dmi/id/sys_vendor");
  if (const std::string product = Line(roots.sys + "/class/dmi/id/product_name"); !product.empty()) {
    facts.machine += (facts.machine.empty() ? "" : " ") + product;
  }
  return facts;
}

MemoryFacts ReadMemory(const HostRoots& roots) {
  const std::string text = ReadSmall(roots.proc + "/meminfo").value_or("");
  const auto bytes = [&](std::string_view key) { return FindNumber(text, key).value_or(0) * 1024; };
  MemoryFacts facts;
  facts.total_bytes = bytes("MemTotal");
  facts.available_bytes = bytes("MemAvailable");
  facts.swap_total_bytes = bytes("SwapTotal");
  facts.swap_used_bytes = facts.swap_total_bytes - bytes("SwapFree");
  facts.page_bytes = ::sysconf(_SC_PAGESIZE);
  facts.transparent_huge_pages = ChosenOf(Line(roots.sys + "/kernel/mm/transparent_hugepage/enabled"));
  facts.reserved_huge_pages = FindNumber(text, "HugePages_Total").value_or(0);
  const auto nodes = Entries(roots.sys + "/devices/system/node");
  const auto count =
      std::ranges::count_if(nodes, [](const std::string& name) { return IsNumbered(name, "node"); });
  facts.numa_nodes = std::max(static_cast<int>(count), 1);
  return facts;
}

CgroupFacts ReadCgroup(const HostRoots& roots) {
  const monitor::Cgroup cgroup = monitor::FindCgroup(ReadSmall(roots.proc + "/self/mountinfo").value_or(""),
                                                     ReadSmall(roots.proc + "/self/cgroup").value_or(""));
  const monitor::CgroupLimits limits = monitor::ReadCgroupLimits(cgroup);
  return {.version = cgroup.version(),
          .cpus = limits.cpus,
          .memory_bytes = limits.memory_bytes,
          .container = monitor::IsContainer(cgroup, limits, roots.proc, ::getpid())};
}

LimitFacts ReadLimits() {
  const auto finite = [](rlim_t limit) {
    return limit == RLIM_INFINITY ? std::nullopt : std::optional<uint64_t>(limit);
  };
  rlimit files{}, locked{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  return {.open_files = finite(files.rlim_cur),
          .open_files_at_most = finite(files.rlim_max),
          .locked_memory_bytes = finite(locked.rlim_cur)};
}

std::vector<NetworkFacts> ReadNetworks(const HostRoots& roots) {
  std::vector<NetworkFacts> networks;
  std::error_code ignored;
  for (const std::string& name : Entries(roots.sys + "/class/net")) {
    if (name == "lo") continue;
    const std::string folder = fmt::format("{}/class/net/{}", roots.sys, name);
    NetworkFacts facts{.name = name, .up = Line(folder + "/operstate") == "up"};
    if (!facts.up && !std::filesystem::exists(folder + "/device", ignored)) continue;
    facts.megabits_per_s = Number(folder + "/speed");
    if (facts.megabits_per_s.value_or(0) <= 0) facts.megabits_per_s.reset();  // -1: the driver does not know
    facts.mtu = Number(folder + "/mtu").value_or(0);
    networks.push_back(std::move(facts));
  }
  return networks;
}

DiskFacts ReadDisk(const HostRoots& roots, const std::string& folder) {
  DiskFacts facts;
  std::error_code ignored;
  facts.folder = EscapeBytes(std::filesystem::weakly_canonical(folder, ignored).string());
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0) return facts;
  const std::string device = fmt::format("{}:{}", major(status.st_dev), minor(status.st_dev));
  facts.filesystem = FindFilesystem(ReadSmall(roots.proc + "/self/mountinfo").value_or(""), device);
  const auto block = std::filesystem::canonical(fmt::format("{}/dev/block/{}", roots.sys, device), ignored);
  if (block.empty()) return facts;
  facts.device = block.filename();
  // A partition has the queue of the disk above it.
  const bool whole = std::filesystem::exists(block / "queue", ignored);
  const std::string queue = (whole ? block : block.parent_path()) / "queue";
  if (const auto rotational = Number(queue + "/rotational")) facts.rotational = *rotational != 0;
  facts.scheduler = ChosenOf(Line(queue + "/scheduler"));
  return facts;
}

ToolFacts ReadTools(const HostRoots& roots, std::string_view path) {
  ToolFacts facts;
  for (const char* name : {"podman", "docker"}) {
    if (IsInPath(name, path)) facts.containers.emplace_back(name);
  }
  facts.perf_event_paranoid = Number(roots.proc + "/sys/kernel/perf_event_paranoid");
  std::error_code ignored;
  facts.hardware_counters = std::filesystem::exists(roots.sys + "/bus/event_source/devices/cpu", ignored);
  return facts;
}

std::vector<EngineFacts> ReadEngines(const Clock& clock) {
  std::vector<EngineFacts> engines;
  for (const auto& [kind, word] : infer::kEngines) {
    if (kind == infer::EngineKind::kEmulated) continue;  // it is always there
    const std::string name(word);
    const auto engine = infer::OpenEngine(name, clock);
    if (engine) {
      engines.push_back({.name = name, .version = (*engine)->version()});
    } else {
      engines.push_back({.name = name, .problem = engine.error().message});
    }
  }
  return engines;
}

TimerFacts MeasureTimer(const HostRoots& roots, const Clock& clock, Duration budget) {
  constexpr int kReadings = 2000;
  constexpr Duration kSleep = 500us;
  TimerFacts facts;
  facts.clock_source = Line(roots.sys + "/devices/system/clocksource/clocksource0/current_clocksource");
  const Instant begin = clock.Now();
  Instant last = begin;
  facts.resolution = Duration::max();
  for (int i = 0; i < kReadings; ++i) {
    const Instant now = clock.Now();
    if (now > last) facts.resolution = std::min(facts.resolution, now - last);
    last = now;
  }
  facts.read_cost = (last - begin) / kReadings;
  if (facts.resolution == Duration::max()) facts.resolution = Duration{};

  std::vector<Duration> overshoots;
  while (clock.Now() - begin < budget) {
    const Instant due = clock.Now() + kSleep;
    SleepUntil(due);
    overshoots.push_back(clock.Now() - due);
  }
  facts.sleeps = static_cast<int>(overshoots.size());
  if (overshoots.empty()) return facts;
  std::ranges::sort(overshoots);
  facts.overshoot_median = overshoots[overshoots.size() / 2];
  facts.overshoot_max = overshoots.back();
  return facts;
}

LoadFacts ReadLoad(const HostRoots& roots, const monitor::Resources& used) {
  LoadFacts facts;
  facts.watched = FromSeconds(used.wall_s);
  if (used.server_cpu) {
    const double own =
        (used.app_cpu ? used.app_cpu->mean : 0) + (used.recogniser_cpu ? used.recogniser_cpu->mean : 0);
    facts.foreign_cpus = std::max(used.server_cpu->mean - own - used.observer_cpu, 0.0);
  }
  facts.steal_percent = used.steal_percent;
  const auto machine = monitor::ParseMachineStat(ReadSmall(roots.proc + "/stat").value_or(""));
  if (machine) {
    const double all = Seconds(machine->busy + machine->idle + machine->steal);
    if (all > 0) facts.steal_percent_so_far = 100 * Seconds(machine->steal) / all;
  }
  facts.cpu_pressure_percent = used.cpu_pressure_percent;
  facts.memory_pressure_percent = used.memory_pressure_percent;
  facts.io_pressure_percent = used.io_pressure_percent;
  return facts;
}

}  // namespace weir::probe
