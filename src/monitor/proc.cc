#include "monitor/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

namespace weir::monitor {
namespace {

constexpr Duration kTick = 10ms;  // USER_HZ is 100 wherever this program runs

template <typename Number>
bool Parse(std::string_view word, Number& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

// Ticks of one field; a damaged field counts as none, a negative one (seen for steal on some hosts) as well.
Duration Ticks(std::string_view word) {
  int64_t ticks = 0;
  return Parse(word, ticks) && ticks > 0 && ticks < INT64_MAX / kTick.count() ? ticks * kTick : Duration{};
}

std::optional<size_t> ReadAll(int fd, std::string& buffer) {
  size_t size = 0;
  while (true) {
    if (buffer.size() < size + 4096) buffer.resize(std::max<size_t>(size + 4096, buffer.size() * 2));
    const ssize_t got = ::pread(fd, buffer.data() + size, buffer.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return size;
    size += static_cast<size_t>(got);
  }
}

UniqueFd OpenToRead(const std::string& path) { return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

}  // namespace

std::vector<std::string_view> SplitWords(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return words;
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  const auto words = SplitWords(text);
  int64_t value = 0;
  if (words.size() != 1 || !Parse(words[0], value)) return std::nullopt;
  return value;
}

std::optional<int64_t> FindNumber(std::string_view text, std::string_view key) {
  for (const std::string_view line : SplitLines(text)) {
    if (!line.starts_with(key) || line.size() == key.size()) continue;
    if (line[key.size()] != ' ' && line[key.size()] != ':') continue;
    const auto words = SplitWords(line.substr(key.size() + 1));
    int64_t value = 0;
    if (words.empty() || !Parse(words[0], value)) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // The name may hold blanks and brackets of its own: the last ")" ends it.
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const auto words = SplitWords(text.substr(close + 1));  // words[0] is field 3 of proc(5)
  const auto field = [&](size_t number) { return words[number - 3]; };
  ProcessStat stat;
  const auto pid = ParseNumber(text.substr(0, open));
  int64_t pages = 0;
  if (!pid || words.size() < 22 || field(3).size() != 1 || !Parse(field(4), stat.parent) ||
      !Parse(field(20), stat.threads) || !Parse(field(22), stat.start_ticks) || !Parse(field(24), pages)) {
    return std::nullopt;
  }
  stat.pid = static_cast<int>(*pid);
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = field(3)[0];
  stat.cpu = Ticks(field(14)) + Ticks(field(15));
  stat.children_cpu = Ticks(field(16)) + Ticks(field(17));
  stat.resident_bytes = std::max<int64_t>(pages, 0) * ::sysconf(_SC_PAGESIZE);
  return stat;
}

std::optional<MachineStat> ParseMachineStat(std::string_view text) {
  const auto words = SplitWords(text.substr(0, text.find('\n')));
  if (words.size() < 8 || words[0] != "cpu") return std::nullopt;
  const auto ticks = [&](size_t i) { return i < words.size() ? Ticks(words[i]) : Duration{}; };
  MachineStat stat;  // user nice system idle iowait irq softirq steal; guest time is inside user
  stat.busy = ticks(1) + ticks(2) + ticks(3) + ticks(6) + ticks(7);
  stat.idle = ticks(4) + ticks(5);
  stat.steal = ticks(8);
  stat.context_switches = FindNumber(text, "ctxt");
  stat.forks = FindNumber(text, "processes");
  return stat;
}

std::optional<MemoryInfo> ParseMemoryInfo(std::string_view text) {
  const auto total = FindNumber(text, "MemTotal"), available = FindNumber(text, "MemAvailable");
  if (!total || !available) return std::nullopt;
  return MemoryInfo{*total * 1024, *available * 1024};
}

std::optional<IoBytes> ParseIo(std::string_view text) {
  const auto read = FindNumber(text, "read_bytes"), written = FindNumber(text, "write_bytes");
  if (!read || !written) return std::nullopt;
  return IoBytes{*read, *written};
}

std::optional<NetworkBytes> ParseNetworkBytes(std::string_view text) {
  std::optional<NetworkBytes> sum;
  for (const std::string_view line : SplitLines(text)) {
    const size_t colon = line.rfind(':');  // an alias such as eth0:1 has one of its own
    if (colon == std::string_view::npos) continue;
    const auto name = SplitWords(line.substr(0, colon)), words = SplitWords(line.substr(colon + 1));
    int64_t received = 0, sent = 0;
    if (name.size() != 1 || words.size() < 9 || !Parse(words[0], received) || !Parse(words[8], sent))
      continue;
    if (!sum) sum.emplace();
    if (name[0] == "lo") continue;
    sum->received += received;
    sum->sent += sent;
  }
  return sum;
}

std::optional<DiskBytes> ParseDiskBytes(std::string_view text, const std::vector<std::string>& disks) {
  constexpr int64_t kSector = 512;
  std::optional<DiskBytes> sum;
  for (const std::string_view line : SplitLines(text)) {
    const auto words =
        SplitWords(line);  // major, minor, name, reads, merged, sectors, ms, writes, merged, sectors
    int64_t read = 0, written = 0;
    if (words.size() < 10 || std::ranges::find(disks, words[2]) == disks.end()) continue;
    if (!Parse(words[5], read) || !Parse(words[9], written)) continue;
    if (!sum) sum.emplace();
    sum->read += read * kSector;
    sum->written += written * kSector;
  }
  return sum;
}

std::optional<int64_t> ParsePeakResident(std::string_view text) {
  const auto kilobytes = FindNumber(text, "VmHWM");
  if (!kilobytes) return std::nullopt;
  return *kilobytes * 1024;
}

std::optional<Duration> ParsePressure(std::string_view text) {
  const auto words = SplitWords(text.substr(0, text.find('\n')));
  constexpr std::string_view kTotal = "total=";
  int64_t microseconds = 0;
  if (words.size() < 2 || words[0] != "some" || !words.back().starts_with(kTotal) ||
      !Parse(words.back().substr(kTotal.size()), microseconds)) {
    return std::nullopt;
  }
  return std::chrono::microseconds(microseconds);
}

std::optional<Duration> ParseSchedstat(std::string_view text) {
  const auto words = SplitWords(text);
  int64_t nanoseconds = 0;
  if (words.size() < 3 || !Parse(words[0], nanoseconds)) return std::nullopt;
  return Duration(nanoseconds);
}

std::optional<std::string> ReadSmall(const std::string& path) {
  const UniqueFd fd = OpenToRead(path);
  std::string buffer;
  const auto size = fd.valid() ? ReadAll(fd.get(), buffer) : std::nullopt;
  if (!size) return std::nullopt;
  buffer.resize(*size);
  return buffer;
}

std::vector<int> NumberedEntries(const std::string& folder) {
  std::vector<int> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return numbers;
  while (const dirent* entry = ::readdir(entries.get())) {
    int number = 0;
    if (Parse(std::string_view(entry->d_name), number)) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

KernelFile::KernelFile(const std::string& path) : fd_(OpenToRead(path)) {}

std::optional<std::string_view> KernelFile::Read() {
  const auto size = fd_.valid() ? ReadAll(fd_.get(), buffer_) : std::nullopt;
  if (!size) return std::nullopt;
  return std::string_view(buffer_).substr(0, *size);
}

}  // namespace weir::monitor
