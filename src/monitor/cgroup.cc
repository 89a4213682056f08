#include "monitor/cgroup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "monitor/proc.h"

namespace weir::monitor {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 62;  // v1 writes LONG_MAX rounded down to a page
constexpr std::string_view kFirstNamespace = "cgroup:[4026531835]";  // PROC_CGROUP_INIT_INO of the kernel

constexpr std::string_view kThrottledV2 = "throttled_usec", kThrottledV1 = "throttled_time";
constexpr std::string_view kCacheV2 = "inactive_file", kCacheV1 = "total_inactive_file";

bool HasWord(std::string_view list, std::string_view word) {
  return fmt::format(",{},", list).find(fmt::format(",{},", word)) != std::string::npos;
}

// The group's path in the hierarchy of `controller` ("" is v2), from the lines "ID:CONTROLLERS:PATH".
std::optional<std::string> GroupPath(std::string_view cgroup, std::string_view controller) {
  for (const std::string_view line : SplitLines(cgroup)) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool here = controller.empty() ? controllers.empty() : HasWord(controllers, controller);
    if (here) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

struct Mount {
  std::string root;  // the part of the hierarchy that is mounted
  std::string point;
};

// The first mount of the hierarchy of `controller`. A line of mountinfo, as proc(5) has it:
// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER-OPTIONS
std::optional<Mount> FindMount(std::string_view mountinfo, std::string_view controller) {
  for (const std::string_view line : SplitLines(mountinfo)) {
    const auto words = SplitWords(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const std::string_view type = dash[1], options = dash[3];
    const bool here =
        controller.empty() ? type == "cgroup2" : type == "cgroup" && HasWord(options, controller);
    if (here) return Mount{std::string(words[3]), std::string(words[4])};
  }
  return std::nullopt;
}

CgroupPlace FindPlace(std::string_view mountinfo, std::string_view cgroup, std::string_view controller,
                      bool& mounted_inside) {
  const auto mount = FindMount(mountinfo, controller);
  auto path = GroupPath(cgroup, controller);
  if (!mount || !path) return {};
  if (mount->root != "/") {
    // Without a cgroup namespace the path is the host's: what is above the mounted part cannot be seen from
    // here.
    // "/../" roots are those of a group outside our namespace.
    mounted_inside = true;
    *path = path->starts_with(mount->root) ? path->substr(mount->root.size()) : "";
  }
  if (*path == "/" || path->starts_with("/..")) path->clear();
  return {mount->point, *path};
}

std::optional<int64_t> NumberAt(const std::string& path) {
  const auto text = ReadSmall(path);
  return text ? ParseNumber(*text) : std::nullopt;
}

// The folder of the group itself. A path that is not under the mount is the host's, seen from inside a
// container.
std::string Folder(const CgroupPlace& place) {
  std::error_code ignored;
  const std::string folder = place.mount + place.path;
  return std::filesystem::is_directory(folder, ignored) ? folder : place.mount;
}

// The least of what `read` finds in the group's folder and those above it.
template <typename T>
std::optional<T> LeastUpwards(const CgroupPlace& place,
                              const std::function<std::optional<T>(const std::string&)>& read) {
  if (place.mount.empty()) return std::nullopt;
  std::optional<T> least;
  for (std::string path = place.path;; path.erase(path.rfind('/'))) {
    const auto value = read(place.mount + path);
    if (value && (!least || *value < *least)) least = value;
    if (path.find('/') == std::string::npos) return least;
  }
}

std::optional<double> QuotaV2(const std::string& folder) {
  const auto text = ReadSmall(folder + "/cpu.max");
  const auto words = SplitWords(text ? std::string_view(*text) : std::string_view());
  if (words.size() != 2) return std::nullopt;
  const auto quota = ParseNumber(words[0]), period = ParseNumber(words[1]);  // "max" is no number: no limit
  if (!quota || !period || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> QuotaV1(const std::string& folder) {
  const auto quota = NumberAt(folder + "/cpu.cfs_quota_us"), period = NumberAt(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;  // -1: no limit
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::function<std::optional<int64_t>(const std::string&)> MemoryLimit(const char* file) {
  return [file](const std::string& folder) {
    auto limit = NumberAt(folder + file);
    if (limit && *limit >= kNoLimit) limit.reset();
    return limit;
  };
}

}  // namespace

std::string Cgroup::version() const {
  const bool v1 = !cpu.mount.empty() || !memory.mount.empty();
  const bool v2 = !unified.mount.empty();
  return v1 && v2 ? "hybrid" : v1 ? "v1" : v2 ? "v2" : "none";
}

Cgroup FindCgroup(std::string_view mountinfo, std::string_view cgroup) {
  Cgroup found;
  found.unified = FindPlace(mountinfo, cgroup, "", found.mounted_inside);
  found.cpu = FindPlace(mountinfo, cgroup, "cpu", found.mounted_inside);
  found.memory = FindPlace(mountinfo, cgroup, "memory", found.mounted_inside);
  return found;
}

CgroupLimits ReadCgroupLimits(const Cgroup& cgroup) {
  CgroupLimits limits;
  limits.cpus = LeastUpwards<double>(cgroup.unified, QuotaV2);
  if (!limits.cpus) limits.cpus = LeastUpwards<double>(cgroup.cpu, QuotaV1);
  limits.memory_bytes = LeastUpwards<int64_t>(cgroup.unified, MemoryLimit("/memory.max"));
  if (!limits.memory_bytes) {
    limits.memory_bytes = LeastUpwards<int64_t>(cgroup.memory, MemoryLimit("/memory.limit_in_bytes"));
  }
  return limits;
}

CgroupCounters::CgroupCounters(const Cgroup& cgroup) {
  const auto open = [](const CgroupPlace& place, const char* name,
                       std::string_view key) -> std::optional<KernelFile> {
    if (place.mount.empty()) return std::nullopt;
    KernelFile file(Folder(place) + name);
    const auto text = file.Read();
    const bool found = text && (key.empty() ? ParseNumber(*text) : FindNumber(*text, key)).has_value();
    return found ? std::optional(std::move(file)) : std::nullopt;
  };
  memory_ = open(cgroup.unified, "/memory.current", "");
  v2_memory_ = memory_.has_value();
  if (!v2_memory_) memory_ = open(cgroup.memory, "/memory.usage_in_bytes", "");
  memory_stat_ =
      open(v2_memory_ ? cgroup.unified : cgroup.memory, "/memory.stat", v2_memory_ ? kCacheV2 : kCacheV1);
  cpu_stat_ = open(cgroup.unified, "/cpu.stat", kThrottledV2);
  if (!cpu_stat_) cpu_stat_ = open(cgroup.cpu, "/cpu.stat", kThrottledV1);
}

CgroupUsage CgroupCounters::Read() {
  const auto number = [](std::optional<KernelFile>& file, std::string_view key) -> std::optional<int64_t> {
    const auto text = file ? file->Read() : std::nullopt;
    if (!text) return std::nullopt;
    return key.empty() ? ParseNumber(*text) : FindNumber(*text, key);
  };
  CgroupUsage usage;
  usage.memory_bytes = number(memory_, "");
  const int64_t cache = number(memory_stat_, v2_memory_ ? kCacheV2 : kCacheV1).value_or(0);
  if (usage.memory_bytes) *usage.memory_bytes = std::max<int64_t>(*usage.memory_bytes - cache, 0);
  if (const auto held = number(cpu_stat_, kThrottledV2)) {
    usage.throttled = std::chrono::microseconds(*held);
  } else if (const auto held = number(cpu_stat_, kThrottledV1)) {
    usage.throttled = Duration(*held);
  }
  return usage;
}

bool IsContainer(const Cgroup& cgroup, const CgroupLimits& limits, const std::string& proc, int process) {
  if (cgroup.mounted_inside || limits.memory_bytes) return true;
  char name[64];
  const ssize_t size = ::readlink(fmt::format("{}/{}/ns/cgroup", proc, process).c_str(), name, sizeof name);
  return size > 0 && std::string_view(name, static_cast<size_t>(size)) != kFirstNamespace;
}

}  // namespace weir::monitor
