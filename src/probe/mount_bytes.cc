#include "probe/mount_bytes.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

namespace weir::probe {
namespace {

constexpr std::string_view kDevice = "device ", kMountedOn = " mounted on ", kFsType = " with fstype ";

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Returns the mount point of a line that begins the account of an NFS mount.
std::optional<std::string_view> NfsMountIn(std::string_view line) {
  if (!line.starts_with(kDevice)) return std::nullopt;
  const size_t type = line.rfind(kFsType);
  if (type == std::string_view::npos || !line.substr(type + kFsType.size()).starts_with("nfs"))
    return std::nullopt;
  const size_t at = line.find(kMountedOn);
  if (at == std::string_view::npos || at + kMountedOn.size() > type) return std::nullopt;
  return line.substr(at + kMountedOn.size(), type - at - kMountedOn.size());
}

// Returns field `number` of a line of fields between spaces and tabs.
std::optional<uint64_t> FieldOf(std::string_view line, int number) {
  for (; number >= 0; --number) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return std::nullopt;
    line.remove_prefix(begin);
    if (number > 0) line.remove_prefix(std::min(line.find_first_of(" \t"), line.size()));
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || (end != line.data() + line.size() && *end != ' ' && *end != '\t'))
    return std::nullopt;
  return value;
}

// Spaces stand as \040 in mount points, and so on.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = text.substr(i).substr(0, 4);
    if (octal.size() == 4 && octal[0] == '\\' &&
        std::ranges::all_of(octal.substr(1), [](char c) { return c >= '0' && c <= '7'; })) {
      plain.push_back(static_cast<char>((octal[1] - '0') * 64 + (octal[2] - '0') * 8 + (octal[3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::string ReadMountStats() {
  std::ifstream file("/proc/self/mountstats");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<std::string> NfsMountPoints(std::string_view mountstats) {
  std::vector<std::string> points;
  while (!mountstats.empty())
    if (const auto point = NfsMountIn(TakeLine(mountstats))) points.emplace_back(*point);
  return points;
}

std::optional<uint64_t> ServerReadBytes(std::string_view mountstats, std::string_view mount_point) {
  constexpr int kServerRead = 4;  // after normal reads and writes, and direct reads and writes
  bool here = false;
  std::optional<uint64_t> bytes;
  while (!mountstats.empty()) {
    std::string_view line = TakeLine(mountstats);
    if (line.starts_with(kDevice)) {
      here = NfsMountIn(line) == mount_point;  // the last one mounted there covers those before it
      if (here) bytes.reset();
    }
    if (!here) continue;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("bytes:")) bytes = FieldOf(line.substr(6), kServerRead);
  }
  return bytes;
}

MountMeter MountMeter::Of(const std::vector<StorageSample>& samples) {
  MountMeter meter;
  const std::vector<std::string> points = NfsMountPoints(ReadMountStats());
  if (points.empty()) return meter;
  std::set<std::string> folders, used;
  for (const StorageSample& sample : samples)
    folders.insert(std::filesystem::path(sample.path).parent_path().string());
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::string whole = std::filesystem::weakly_canonical(folder, error).string();
    const std::string* longest = nullptr;
    for (const std::string& point : points) {
      const std::string plain = Unescaped(point);
      const bool below = whole == plain || plain == "/" || whole.starts_with(plain + "/");
      if (below && (longest == nullptr || point.size() > longest->size())) longest = &point;
    }
    if (longest == nullptr) return meter;
    used.insert(*longest);
  }
  meter.mount_points_.assign(used.begin(), used.end());
  return meter;
}

std::optional<uint64_t> MountMeter::Read() const {
  if (mount_points_.empty()) return std::nullopt;
  const std::string text = ReadMountStats();
  uint64_t sum = 0;
  for (const std::string& point : mount_points_) {
    const auto bytes = ServerReadBytes(text, point);
    if (!bytes) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

std::optional<double> MountMeter::Since(const std::optional<uint64_t>& before) const {
  const auto now = Read();
  if (!before || !now || *now < *before) return std::nullopt;
  return static_cast<double>(*now - *before);
}

}  // namespace weir::probe
