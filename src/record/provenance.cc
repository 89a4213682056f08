#include "record/provenance.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/secrets.h"
#include "base/thread.h"
#include "monitor/cgroup.h"
#include "monitor/proc.h"

namespace weir::record {
namespace {

std::string CompilerName() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::optional<std::string> FirstLine(const std::string& path) {
  const auto text = monitor::ReadSmall(path);
  if (!text) return std::nullopt;
  return text->substr(0, text->find('\n'));
}

void FillCgroup(Provenance& provenance) {
  const auto mounts = monitor::ReadSmall("/proc/self/mountinfo"),
             groups = monitor::ReadSmall("/proc/self/cgroup");
  const monitor::Cgroup cgroup = monitor::FindCgroup(mounts.value_or(""), groups.value_or(""));
  const monitor::CgroupLimits limits = monitor::ReadCgroupLimits(cgroup);
  provenance.cgroup_version = cgroup.version();
  provenance.cgroup_cpus = limits.cpus;
  provenance.cgroup_memory_bytes = limits.memory_bytes;
}

bool IsPlain(std::string_view argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%^";
  return !argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos;
}

bool IsText(std::string argument) {
  const bool control = std::ranges::any_of(argument, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  std::ranges::replace(argument, '\\',
                       '/');  // the one character that EscapeBytes changes although it is UTF-8
  return !control && EscapeBytes(argument) == argument;
}

std::string Quote(std::string_view argument) {
  if (IsPlain(argument)) return std::string(argument);
  std::string quoted;
  if (IsText(std::string(argument))) {
    for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return "'" + quoted + "'";
  }
  for (const char c : EscapeBytes(argument)) {  // "\xNN" and "\\" mean the same in $'...'
    const auto byte = static_cast<unsigned char>(c);
    quoted += c == '\''                     ? "\\'"
              : byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02X}", byte)
                                            : std::string(1, c);
  }
  return "$'" + quoted + "'";
}

}  // namespace

std::string CommandLine(std::span<const std::string> arguments) {
  std::string line;
  for (const std::string& argument : WithoutSecrets(arguments))
    line += (line.empty() ? "" : " ") + Quote(argument);
  return line;
}

std::optional<std::string> ParseCpuModel(std::string_view cpuinfo) {
  for (const std::string_view line : monitor::SplitLines(cpuinfo)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string_view::npos)
      return std::string(line.substr(colon + 2));
  }
  return std::nullopt;
}

Provenance CollectProvenance(ProvenanceInputs inputs) {
  Provenance provenance;
  utsname system{};
  ::uname(&system);
  provenance.host = EscapeBytes(system.nodename);
  provenance.kernel = system.release;
  const auto cpuinfo = monitor::ReadSmall("/proc/cpuinfo");
  provenance.cpu_model = ParseCpuModel(cpuinfo.value_or("")).value_or(system.machine);
  provenance.logical_cpus = std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1);
  provenance.usable_cpus = UsableCpus();
  const auto meminfo = monitor::ReadSmall("/proc/meminfo");
  if (const auto memory = monitor::ParseMemoryInfo(meminfo.value_or("")))
    provenance.memory_bytes = memory->total_bytes;
  provenance.governor = FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  FillCgroup(provenance);
  constexpr std::string_view kDirty = "-dirty";
  std::string_view build = BuildDescription();
  provenance.build_dirty = build.ends_with(kDirty);
  if (provenance.build_dirty) build.remove_suffix(kDirty.size());
  provenance.build_id = build;
  provenance.compiler = CompilerName();
  provenance.libraries = std::move(inputs.libraries);
  provenance.seed = inputs.seed;
  provenance.command = CommandLine(inputs.command);
  provenance.wall_time = WallTimeLabel();
  return provenance;
}

}  // namespace weir::record
