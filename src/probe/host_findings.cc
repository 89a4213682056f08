#include "probe/host_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "results/thresholds.h"

namespace weir::probe {
namespace {

using enum Severity;

// Limits above which a run is not to be trusted.
constexpr double kPressurePercent = 10;
constexpr Duration kLongOvershoot = 200us;  // of the median sleep; a quiet machine has about 60
constexpr Duration kCoarseClock = 1us;
constexpr Duration kSlowClock = 500ns;  // a clock of the CPU takes some 20 ns, one asked of a device 1 us
constexpr int64_t kLittleMemory = int64_t{1} << 30;
constexpr uint64_t kFewFiles = 4096;

std::string Size(int64_t bytes) {
  const double gib = static_cast<double>(bytes) / (1 << 30);
  return gib >= 1 ? fmt::format("{:.1f} GiB", gib) : fmt::format("{:.0f} MiB", gib * 1024);
}

std::string Plural(int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

Finding JudgeEngine(const EngineFacts& engine) {
  if (!engine.version.empty()) {
    return {FindingKind::kEngine, kOk, fmt::format("{} {}", engine.name, engine.version),
            "models run with it; results carry its version"};
  }
  return {FindingKind::kEngine, kWarning, fmt::format("{} is not usable", engine.name),
          fmt::format("models cannot run with --engine {}; the rest of the program works", engine.name),
          engine.problem};
}

void JudgeCpu(const HostFacts& facts, std::vector<Finding>& out) {
  const CpuFacts& cpu = facts.cpu;
  out.push_back({FindingKind::kCpuModel, kOk, cpu.model, "results hold for this model"});
  if (cpu.instruction_sets.empty()) {
    out.push_back({FindingKind::kInstructionSets, kNote, "none that inference libraries look for",
                   "engines take their slow general paths"});
  } else {
    out.push_back({FindingKind::kInstructionSets, kOk,
                   fmt::format("{}", fmt::join(cpu.instruction_sets, " ")),
                   "engines choose their code by these: a machine with others is another experiment"});
  }
  const std::string counts =
      fmt::format("{}, {}, {} usable here", Plural(cpu.logical, "logical CPU", "logical CPUs"),
                  Plural(cpu.physical, "core", "cores"), cpu.usable);
  if (cpu.usable < cpu.logical) {
    out.push_back(
        {FindingKind::kCpuCount, kNote, counts,
         "the affinity mask or the control group leaves this process a part of the machine; engines get "
         "that many threads and no more"});
  } else {
    out.push_back({FindingKind::kCpuCount, kOk, counts, "all CPUs can be used"});
  }
  if (cpu.logical > cpu.physical) {
    out.push_back(
        {FindingKind::kSmt, kNote, "cores run two or more threads at once (SMT)",
         "two busy threads of one core each get much less than a core, so CPU time per picture depends on "
         "where threads land",
         "compare with one thread per core: taskset, or echo off > /sys/devices/system/cpu/smt/control"});
  } else {
    out.push_back({FindingKind::kSmt, kOk, "one thread per core, as far as this machine tells",
                   "threads do not share cores"});
  }
}

Finding JudgeGovernor(const std::optional<std::string>& governor) {
  if (!governor) {
    return {FindingKind::kGovernor, kNote,
            "the frequency governor cannot be read (usual in a virtual machine)",
            "the clock frequency is the host's affair and may drift during a run",
            "repeat runs and interleave what is compared"};
  }
  if (*governor == "performance") {
    return {FindingKind::kGovernor, kOk, "governor performance",
            "the clock frequency does not follow the load"};
  }
  return {FindingKind::kGovernor, kWarning, fmt::format("governor {}", *governor),
          "cores slow down when they wait, so light loads look slower than they are",
          "cpupower frequency-set -g performance"};
}

void JudgeTurbo(const std::optional<bool>& turbo, std::vector<Finding>& out) {
  if (!turbo) return;
  if (*turbo) {
    out.push_back({FindingKind::kTurbo, kNote, "turbo is on",
                   "few busy cores run faster than many, and a cool machine faster than a warm one",
                   "warm up before measuring; for scaling curves turn it off (intel_pstate/no_turbo or "
                   "cpufreq/boost)"});
  } else {
    out.push_back({FindingKind::kTurbo, kOk, "turbo is off", "cores run at one speed however many are busy"});
  }
}

void JudgeMachine(const CpuFacts& cpu, const CgroupFacts& cgroup, std::vector<Finding>& out) {
  const std::string name = cpu.machine.empty() ? "" : fmt::format(" ({})", cpu.machine);
  const std::string container = cgroup.container ? ", in a container" : "";
  if (cpu.virtual_machine) {
    out.push_back(
        {FindingKind::kVirtualisation, kNote, "a virtual machine" + name + container,
         "other guests share its cores, caches and disks, and it cannot see them",
         "watch steal; repeat runs at other times; for absolute figures take a machine of your own"});
  } else {
    out.push_back({FindingKind::kVirtualisation, kOk, "a physical machine" + name + container,
                   "no hypervisor stands between the program and the CPUs"});
  }
}

Finding JudgeCgroup(const CgroupFacts& cgroup) {
  std::string what = fmt::format("control groups {}", cgroup.version);
  if (cgroup.cpus) what += fmt::format(", limited to {:.4g} CPUs", *cgroup.cpus);
  if (cgroup.memory_bytes) what += fmt::format(", limited to {} of memory", Size(*cgroup.memory_bytes));
  if (cgroup.cpus) {
    return {
        FindingKind::kCgroup, kWarning, what,
        "a CPU quota is dealt out in slices of some 100 ms: when it is used up all threads stop, which makes "
        "latency jump; throttled_s in results tells how long",
        "give whole CPUs instead of a quota (cpuset, --cpuset-cpus)"};
  }
  if (cgroup.memory_bytes) {
    return {FindingKind::kCgroup, kNote, what,
            "beyond the limit the kernel drops file cache first, then kills"};
  }
  return {FindingKind::kCgroup, kOk, what + ", no limit on CPU or memory", "the group holds nothing back"};
}

void JudgeMemory(const MemoryFacts& memory, std::vector<Finding>& out) {
  const std::string free =
      fmt::format("{} of memory, {} available", Size(memory.total_bytes), Size(memory.available_bytes));
  if (memory.available_bytes < kLittleMemory) {
    out.push_back({FindingKind::kMemory, kWarning, free,
                   "pictures will be read again from disk, or the run is killed",
                   "stop what holds the memory, or take smaller batches"});
  } else {
    out.push_back(
        {FindingKind::kMemory, kOk, free, "what fits is served from the file cache the second time"});
  }
  if (memory.swap_used_bytes > 0) {
    out.push_back(
        {FindingKind::kSwap, kWarning,
         fmt::format("{} of {} swap in use", Size(memory.swap_used_bytes), Size(memory.swap_total_bytes)),
         "a page that has to come back from disk stops a thread for milliseconds",
         "swapoff -a, or free memory"});
  } else if (memory.swap_total_bytes > 0) {
    out.push_back({FindingKind::kSwap, kNote,
                   fmt::format("{} of swap, unused", Size(memory.swap_total_bytes)),
                   "under memory pressure latencies get long tails before anything fails"});
  } else {
    out.push_back({FindingKind::kSwap, kOk, "no swap", "memory does not move to disk"});
  }
  out.push_back({FindingKind::kPageSize, kOk, fmt::format("pages of {} KiB", memory.page_bytes / 1024),
                 "the unit of memory and file cache"});
  if (memory.transparent_huge_pages == "always") {
    out.push_back({FindingKind::kHugePages, kNote, "transparent huge pages: always",
                   "faster for large tensors, but the kernel may stop a thread to make one",
                   "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled where tails matter"});
  } else if (!memory.transparent_huge_pages.empty()) {
    out.push_back({FindingKind::kHugePages, kOk,
                   fmt::format("transparent huge pages: {}; {} reserved", memory.transparent_huge_pages,
                               memory.reserved_huge_pages),
                   "programs get them only where they ask"});
  }
  if (memory.numa_nodes > 1) {
    out.push_back(
        {FindingKind::kNuma, kNote, fmt::format("{} NUMA nodes", memory.numa_nodes),
         "memory of the other node is slower, so a run depends on where its threads and data landed",
         "numactl --cpunodebind=0 --membind=0, or one process per node"});
  } else {
    out.push_back({FindingKind::kNuma, kOk, "one NUMA node", "all memory is equally far"});
  }
}

Finding JudgeLimits(const LimitFacts& limits) {
  const auto text = [](const std::optional<uint64_t>& limit) {
    return limit ? fmt::format("{}", *limit) : std::string("unlimited");
  };
  const std::string locked =
      limits.locked_memory_bytes ? Size(static_cast<int64_t>(*limits.locked_memory_bytes)) : "unlimited";
  const std::string what = fmt::format("open files {} (at most {}), locked memory {}",
                                       text(limits.open_files), text(limits.open_files_at_most), locked);
  if (limits.open_files && *limits.open_files < kFewFiles) {
    return {FindingKind::kLimits, kNote, what,
            "a load test with many connections runs out of file descriptors",
            fmt::format("ulimit -n {}", limits.open_files_at_most.value_or(65536))};
  }
  return {FindingKind::kLimits, kOk, what, "enough for thousands of connections"};
}

void JudgeTime(const TimerFacts& timer, std::vector<Finding>& out) {
  const std::string clock = fmt::format("clock {}: steps of {} ns, {} ns a reading",
                                        timer.clock_source.empty() ? "of unknown source" : timer.clock_source,
                                        timer.resolution.count(), timer.read_cost.count());
  if (timer.resolution > kCoarseClock || timer.read_cost > kSlowClock) {
    out.push_back({FindingKind::kClock, kWarning, clock,
                   "short stages drown in the clock's own error and cost",
                   "boot with clocksource=tsc where the CPU has a steady one"});
  } else {
    out.push_back({FindingKind::kClock, kOk, clock, "fine enough for stages of a microsecond"});
  }
  if (timer.sleeps == 0) return;
  const std::string sleep =
      fmt::format("a sleep of 500 us ends {:.0f} us late (median of {}), {:.0f} us at worst",
                  Microseconds(timer.overshoot_median), timer.sleeps, Microseconds(timer.overshoot_max));
  if (timer.overshoot_median > kLongOvershoot) {
    out.push_back({FindingKind::kTimer, kWarning, sleep,
                   "requests leave late and batches wait longer than told: high rates cannot be paced",
                   "stop other work, and take fewer busy threads than CPUs"});
  } else {
    out.push_back(
        {FindingKind::kTimer, kOk, sleep, "the lateness to expect of paced requests and emulated engines"});
  }
}

void JudgeLoad(const LoadFacts& load, int logical_cpus, std::vector<Finding>& out) {
  if (load.foreign_cpus) {
    const std::string what =
        fmt::format("other processes use {:.2f} of {} (over {:.0f} ms)", *load.foreign_cpus,
                    Plural(logical_cpus, "CPU", "CPUs"), Milliseconds(load.watched));
    if (*load.foreign_cpus > results::threshold::kForeignShare * logical_cpus) {
      out.push_back({FindingKind::kForeignCpu, kWarning, what,
                     "they take cores and caches away: throughput falls and latency grows by an amount that "
                     "nobody knows",
                     "stop them (top shows which), or leave them cores of their own with taskset"});
    } else {
      out.push_back({FindingKind::kForeignCpu, kOk, what, "the machine is quiet"});
    }
  }
  if (load.steal_percent) {
    std::string what = fmt::format("{:.1f} % of the CPU time stolen now", *load.steal_percent);
    if (load.steal_percent_so_far) {
      what += fmt::format(", {:.1f} % since the machine started", *load.steal_percent_so_far);
    }
    if (std::max(*load.steal_percent, load.steal_percent_so_far.value_or(0)) >
        results::threshold::kStealPercent) {
      out.push_back({FindingKind::kSteal,
                     *load.steal_percent > results::threshold::kStealPercent ? kWarning : kNote, what,
                     "the hypervisor ran others in our place: wall times are too long",
                     "repeat at another time, compare CPU time per picture, or move to a dedicated host"});
    } else {
      out.push_back({FindingKind::kSteal, kOk, what, "the hypervisor gives what it promised"});
    }
  }
  if (load.cpu_pressure_percent || load.memory_pressure_percent || load.io_pressure_percent) {
    const std::array shares = {load.cpu_pressure_percent.value_or(0),
                               load.memory_pressure_percent.value_or(0),
                               load.io_pressure_percent.value_or(0)};
    const std::string what =
        fmt::format("some task waited {:.0f} % of the time for CPU, {:.0f} % for memory, {:.0f} % for I/O",
                    shares[0], shares[1], shares[2]);
    if (*std::ranges::max_element(shares) > kPressurePercent) {
      out.push_back({FindingKind::kPressure, kWarning, what,
                     "the machine has more work than it can do at once", "stop other work before measuring"});
    } else {
      out.push_back({FindingKind::kPressure, kOk, what, "nothing queues for the machine"});
    }
  } else {
    out.push_back({FindingKind::kPressure, kNote, "the kernel does not tell pressure (PSI)",
                   "results cannot distinguish waiting for CPU, memory and I/O", "boot with psi=1"});
  }
}

// The states of a card that make figures worse, or another card's.
void JudgeGpu(const GpuFacts& gpu, std::vector<Finding>& out) {
  const monitor::GpuDevice& card = gpu.device;
  const auto warn = [&](std::string what, const char* means, std::string remedy) {
    out.push_back(
        {FindingKind::kGpu, kWarning, fmt::format("{}: {}", card.name, what), means, std::move(remedy)});
  };
  if (card.persistent == false)
    warn("persistence mode is off", "the driver is loaded anew by every program, which takes seconds",
         "nvidia-smi -pm 1, or the service nvidia-persistenced");
  if (card.power_limit_w && card.usual_limit_w && *card.power_limit_w < 0.99 * *card.usual_limit_w)
    warn(fmt::format("its power is capped at {:.0f} W of {:.0f}", *card.power_limit_w, *card.usual_limit_w),
         "it is slower than the card of its name", fmt::format("nvidia-smi -pl {:.0f}", *card.usual_limit_w));
  if (card.pcie_width && card.pcie_most && *card.pcie_width < *card.pcie_most)
    warn(fmt::format("PCIe runs on {} of {} lanes", *card.pcie_width, *card.pcie_most),
         "pictures reach it more slowly", "look at the slot and its BIOS settings (lspci -vv)");
  const auto reasons = monitor::ClockReasons(gpu.now.clock_reasons.value_or(0));
  if (!reasons.empty())
    warn(fmt::format("its clocks are held down ({}{})", fmt::join(reasons, ", "),
                     gpu.now.clock_mhz && card.most_clock_mhz
                         ? fmt::format("; {:.0f} of {:.0f} MHz", *gpu.now.clock_mhz, *card.most_clock_mhz)
                         : ""),
         "figures are those of a slower card", "nvidia-smi -q -d PERFORMANCE; nvidia-smi -rgc, -rac");
  if (gpu.now.neighbours.value_or(0) > 0)
    warn(fmt::format("{} of others compute on it", Plural(*gpu.now.neighbours, "process", "processes")),
         "they take its time and its memory", "end them before you measure (nvidia-smi lists them)");
  if (gpu.now.ecc_errors.value_or(0) > 0)
    warn(fmt::format("{} memory errors were not corrected", *gpu.now.ecc_errors), "its answers may be wrong",
         "reset it (nvidia-smi -r), and have it replaced where they come again");
  if (card.is_divided)
    out.push_back({FindingKind::kGpu, kNote, fmt::format("{}: it is divided into instances (MIG)", card.name),
                   "a process computes on one instance, and NVML tells no utilisation of it",
                   "CUDA_VISIBLE_DEVICES=MIG-UUID chooses one (nvidia-smi -L)"});
}

void JudgeGpus(const GpusFacts& gpus, std::vector<Finding>& out) {
  for (const GpuFacts& gpu : gpus.gpus) {
    out.push_back(
        {FindingKind::kGpu, kNote,
         fmt::format("{}, {} (driver {}{})", gpu.device.name, Size(gpu.device.memory_bytes.value_or(0)),
                     gpus.driver, gpus.cuda_version.empty() ? "" : ", CUDA " + gpus.cuda_version),
         gpu.cuda_index ? fmt::format("--device cuda:{} computes on it", *gpu.cuda_index)
                        : "the engines cannot compute on it: CUDA does not see it"});
    JudgeGpu(gpu, out);
  }
  if (!gpus.gpus.empty() && !gpus.cuda_problem.empty())
    out.push_back({FindingKind::kGpu, kWarning, "CUDA cannot be used", gpus.cuda_problem,
                   "docs/how-to/gpu.md goes from the driver to the first run"});
  if (!gpus.gpus.empty()) return;
  const std::string why =
      gpus.library ? fmt::format("NVML says: {}", gpus.problem) : "NVIDIA's management library is not here";
  out.push_back({FindingKind::kGpu, kOk, fmt::format("no GPU ({})", why),
                 "models run on the CPU; --engine emulated:... stands in for an accelerator"});
}

Finding JudgeNetwork(const NetworkFacts& network) {
  const std::string rate =
      network.megabits_per_s ? fmt::format("{:.4g} Gb/s", static_cast<double>(*network.megabits_per_s) / 1000)
                             : "rate unknown";
  const std::string what =
      fmt::format("{}: {}, MTU {}, {}", network.name, rate, network.mtu, network.up ? "up" : "down");
  if (!network.up) return {FindingKind::kNetwork, kNote, what, "nothing can be served or loaded through it"};
  if (!network.megabits_per_s) {
    return {FindingKind::kNetwork, kNote, what,
            "whether requests fill the link cannot be told from its rated speed",
            "measure it, with iperf3 for example"};
  }
  // A 224 x 224 picture as float tensor, the usual request.
  const double tensors = static_cast<double>(*network.megabits_per_s) * 1e6 / 8 / (224.0 * 224 * 3 * 4);
  return {FindingKind::kNetwork, kOk, what,
          fmt::format("carries at most {:.0f} tensors of 3x224x224 floats a second", std::floor(tensors))};
}

Finding JudgeDisk(DiskFacts disk, bool virtual_machine) {
  if (virtual_machine) disk.rotational.reset();  // a virtual disk tells what its hypervisor was told to say
  std::string what =
      fmt::format("{}: {}", disk.folder, disk.filesystem.empty() ? "unknown filesystem" : disk.filesystem);
  if (!disk.device.empty()) what += fmt::format(" on {}", disk.device);
  if (disk.rotational) what += *disk.rotational ? ", rotating" : ", not rotating";
  if (!disk.scheduler.empty()) what += fmt::format(", scheduler {}", disk.scheduler);
  const bool remote = disk.filesystem.starts_with("nfs") || disk.filesystem.starts_with("fuse") ||
                      disk.filesystem == "cifs" || disk.filesystem == "9p" || disk.filesystem == "virtiofs" ||
                      disk.filesystem == "lustre" || disk.filesystem == "ceph";
  if (remote) {
    return {FindingKind::kDisk, kWarning, what,
            "reading goes over a network or a host: its speed is not this machine's",
            "copy the pictures to a local disk, or measure this storage on purpose"};
  }
  if (disk.filesystem == "tmpfs" || disk.filesystem == "ramfs") {
    return {FindingKind::kDisk, kNote, what, "reading costs no disk at all: real storage is slower"};
  }
  if (disk.filesystem == "overlay") {
    return {FindingKind::kDisk, kNote, what,
            "a container's layers: opening files costs more than on the disk below",
            "put pictures on a mounted volume"};
  }
  if (disk.rotational.value_or(false)) {
    return {FindingKind::kDisk, kNote, what, "small files in random order are read at some 100 a second",
            "prepare a raw or tar set, which is read in one sweep"};
  }
  return {FindingKind::kDisk, kOk, what, "the first pass reads the disk, later ones the file cache"};
}

void JudgeTools(const ToolFacts& tools, std::vector<Finding>& out) {
  if (tools.containers.empty()) {
    out.push_back({FindingKind::kContainerTools, kOk, "neither podman nor docker",
                   "servers can only be started as processes", "apt-get install podman"});
  } else {
    out.push_back({FindingKind::kContainerTools, kOk, fmt::format("{}", fmt::join(tools.containers, ", ")),
                   "servers can be started in containers, where the service behind the program runs"});
  }
  const std::string paranoid = tools.perf_event_paranoid
                                   ? fmt::format("perf_event_paranoid {}", *tools.perf_event_paranoid)
                                   : "no perf events";
  if (tools.hardware_counters && tools.perf_event_paranoid.value_or(4) <= 2) {
    out.push_back({FindingKind::kPerfEvents, kOk, paranoid + ", hardware counters",
                   "perf can tell cycles and cache misses of your processes"});
  } else {
    out.push_back({FindingKind::kPerfEvents, kOk,
                   paranoid + (tools.hardware_counters ? "" : ", no hardware counters"),
                   "profilers see time but not cycles or cache misses; measurements here need neither"});
  }
}

}  // namespace

std::vector<Finding> JudgeHost(const HostFacts& facts) {
  std::vector<Finding> findings;
  for (const EngineFacts& engine : facts.engines) findings.push_back(JudgeEngine(engine));
  JudgeCpu(facts, findings);
  findings.push_back(JudgeGovernor(facts.cpu.governor));
  JudgeTurbo(facts.cpu.turbo, findings);
  JudgeMachine(facts.cpu, facts.cgroup, findings);
  findings.push_back(JudgeCgroup(facts.cgroup));
  JudgeMemory(facts.memory, findings);
  findings.push_back(JudgeLimits(facts.limits));
  JudgeTime(facts.timer, findings);
  JudgeLoad(facts.load, facts.cpu.logical, findings);
  JudgeGpus(facts.gpus, findings);
  for (const NetworkFacts& network : facts.networks) findings.push_back(JudgeNetwork(network));
  findings.push_back(JudgeDisk(facts.disk, facts.cpu.virtual_machine));
  JudgeTools(facts.tools, findings);
  return findings;
}

}  // namespace weir::probe
