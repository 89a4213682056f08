#include "probe/storage_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace weir::probe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "weir-probe.";
constexpr std::string_view kSuffix = ".tmp";
constexpr const char* kOwner = "weir-probe-owner";
constexpr int64_t kSamplesOfAFolder = 1000;
constexpr size_t kBlock = size_t{1} << 20;

std::string SampleName(int64_t i) { return fmt::format("d{:04}/s{:08}.bin", i / kSamplesOfAFolder, i); }

bool IsOurs(const std::string& name, char first, const char* end) {
  const std::string_view stem = std::string_view(name).substr(0, name.size() - std::strlen(end));
  return name.size() > 1 + std::strlen(end) && name.front() == first && name.ends_with(end) &&
         std::ranges::all_of(stem.substr(1), [](char c) { return c >= '0' && c <= '9'; });
}

// Removes the files this module makes below `folder`, then what is empty.
void RemoveSet(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files, folders;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_directory(error) || entry.is_symlink(error) ||
        !IsOurs(entry.path().filename().string(), 'd', ""))
      continue;
    folders.push_back(entry.path());
    for (const auto& file : fs::directory_iterator(entry.path(), error))
      if (IsOurs(file.path().filename().string(), 's', ".bin")) files.push_back(file.path());
  }
  for (const fs::path& file : files) ::unlink(file.c_str());
  for (const fs::path& below : folders) ::rmdir(below.c_str());
  // The mark goes last, so that a kill here leaves a set which the next run still knows as ours.
  const bool others = std::ranges::any_of(fs::directory_iterator(folder, error), [](const auto& entry) {
    return entry.path().filename() != kOwner;
  });
  if (others) return;
  ::unlink((folder + "/" + kOwner).c_str());
  ::rmdir(folder.c_str());
}

Status WriteSample(const std::string& path, uint64_t bytes, Random& random, std::vector<uint64_t>& block) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return FailErrno(EscapeBytes(path), errno);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t length = std::min<uint64_t>(kBlock, bytes - done);
    for (uint64_t i = 0; i < (length + 7) / 8; ++i) block[i] = random.Next();
    for (uint64_t written = 0; written < length;) {
      const ssize_t got =
          ::write(fd.get(), reinterpret_cast<const char*>(block.data()) + written, length - written);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FailErrno(EscapeBytes(path), errno);
      written += static_cast<uint64_t>(got);
    }
    done += length;
  }
  if (::fsync(fd.get()) != 0) return FailErrno(EscapeBytes(path), errno);
  return {};
}

}  // namespace

std::vector<uint64_t> MakeSizes(const MadeSetOptions& options, Seed seed) {
  Random random = seed.Stream("sizes").MakeRandom();
  // Mean and deviation of a log-normal distribution give those of its logarithm.
  const double ratio = options.deviation_bytes / options.mean_bytes;
  const double variance = std::log1p(ratio * ratio);
  const double mean = std::log(options.mean_bytes) - variance / 2;
  std::vector<uint64_t> sizes(static_cast<size_t>(options.samples));
  for (uint64_t& size : sizes) {
    const double bytes =
        variance == 0 ? options.mean_bytes : std::exp(mean + std::sqrt(variance) * random.Normal());
    size = static_cast<uint64_t>(std::max(1.0, std::round(bytes)));
  }
  return sizes;
}

Result<FreeSpace> ReadFreeSpace(const std::string& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return FailErrno(EscapeBytes(path), errno);
  return FreeSpace{.free_bytes = info.f_bavail * info.f_frsize, .total_bytes = info.f_blocks * info.f_frsize};
}

Result<MadeSet> MadeSet::Make(const std::string& path, const MadeSetOptions& options, Seed seed,
                              const Clock& clock, const std::stop_token& stop) {
  RemoveLeftSets(path);
  const std::vector<uint64_t> sizes = MakeSizes(options, seed);
  constexpr uint64_t kOfAFile = 4096;  // at most lost at the end of each
  uint64_t bytes = 0;
  for (const uint64_t size : sizes) bytes += size + kOfAFile;
  const FreeSpace space = TRY(ReadFreeSpace(path));
  const auto kept = static_cast<uint64_t>(options.least_free_share * static_cast<double>(space.total_bytes));
  if (bytes + kept > space.free_bytes)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("{}: the set takes {} bytes, {} are free, and {} stay free: fewer or smaller "
                            "samples (--samples, --sample-bytes) take less",
                            EscapeBytes(path), bytes, space.free_bytes, kept));
  const std::string folder = fmt::format("{}/{}{}{}", path, kPrefix, ::getpid(), kSuffix);
  if (::mkdir(folder.c_str(), 0700) != 0) return FailErrno(EscapeBytes(folder), errno);
  MadeSet set(folder);
  TRY_STATUS(WriteFileWhole(folder + "/" + kOwner, "made by weir probe; removed by it\n"));
  Random random = seed.Stream("contents").MakeRandom();
  std::vector<uint64_t> block(kBlock / 8);
  const Instant begin = clock.Now();
  double written = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while the set was written");
    const auto number = static_cast<int64_t>(i);
    const std::string file = folder + "/" + SampleName(number);
    if (number % kSamplesOfAFolder == 0) TRY_STATUS(MakeFolders(fs::path(file).parent_path().string()));
    TRY_STATUS(WriteSample(file, sizes[i], random, block));
    set.samples_.push_back({file, sizes[i]});
    written += static_cast<double>(sizes[i]);
    if (options.max_bytes_per_s > 0) SleepUntil(begin + FromSeconds(written / options.max_bytes_per_s));
  }
  return set;
}

MadeSet::MadeSet(MadeSet&& other) noexcept
    : folder_(std::exchange(other.folder_, "")), samples_(std::move(other.samples_)) {}

MadeSet::~MadeSet() {
  if (!folder_.empty()) RemoveSet(folder_);
}

int RemoveLeftSets(const std::string& path) {
  std::error_code error;
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
        name.size() <= kPrefix.size() + kSuffix.size())
      continue;
    int pid = 0;
    const char* end = name.data() + name.size() - kSuffix.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, pid);
    if (parsed.ec != std::errc() || parsed.ptr != end || pid <= 0) continue;
    const bool lives = ::kill(pid, 0) == 0 || errno == EPERM;
    if (!lives && fs::is_regular_file(entry.path() / kOwner, error)) left.push_back(entry.path().string());
  }
  for (const std::string& folder : left) RemoveSet(folder);
  return static_cast<int>(left.size());
}

Result<std::vector<StorageSample>> ListSamples(const std::string& folder) {
  std::error_code error;
  std::vector<StorageSample> samples;
  fs::recursive_directory_iterator at(folder, error);
  if (error) return FailErrno(EscapeBytes(folder), error.value());
  for (const fs::recursive_directory_iterator end; at != end; at.increment(error)) {
    if (error) break;
    if (at->is_symlink(error) || !at->is_regular_file(error)) continue;
    const uint64_t bytes = at->file_size(error);
    if (!error && bytes > 0) samples.push_back({at->path().string(), bytes});
  }
  if (error) return FailErrno(EscapeBytes(folder), error.value());
  if (samples.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: there is no file with contents in it", EscapeBytes(folder)));
  std::ranges::sort(samples, {}, &StorageSample::path);
  return samples;
}

std::optional<uint64_t> UnwrittenBytes(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return std::nullopt;
  const auto size = static_cast<uint64_t>(info.st_size);
  constexpr uint32_t kExtents = 64;
  alignas(fiemap) std::array<char, sizeof(fiemap) + kExtents * sizeof(fiemap_extent)> memory{};
  uint64_t written = 0;
  for (uint64_t at = 0; at < size;) {
    memory.fill(0);
    auto* map = reinterpret_cast<fiemap*>(memory.data());
    map->fm_start = at;
    map->fm_length = size - at;
    map->fm_extent_count = kExtents;
    if (::ioctl(fd.get(), FS_IOC_FIEMAP, map) != 0) return std::nullopt;
    if (map->fm_mapped_extents == 0) break;
    const auto* extents = reinterpret_cast<const fiemap_extent*>(memory.data() + sizeof(fiemap));
    for (uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
      const uint64_t first = std::max(at, static_cast<uint64_t>(extents[i].fe_logical));
      const uint64_t last = std::min<uint64_t>(size, extents[i].fe_logical + extents[i].fe_length);
      if (last > first && (extents[i].fe_flags & FIEMAP_EXTENT_UNWRITTEN) == 0) written += last - first;
      at = std::max(at, last);
    }
  }
  return size - std::min(size, written);
}

}  // namespace weir::probe
