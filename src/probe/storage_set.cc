#include "probe/storage_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"

namespace weir::probe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = size_t{1} << 20;

// `written` is called after each block of at most 1 MiB, so that the rate holds within large files too.
template <typename Written>
Status WriteSample(const std::string& path, uint64_t bytes, Random& random, std::vector<uint64_t>& block,
                   const Written& written) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return FailErrno(EscapeBytes(path), errno);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t length = std::min<uint64_t>(kBlock, bytes - done);
    for (uint64_t i = 0; i < (length + 7) / 8; ++i) block[i] = random.Next();
    for (uint64_t at = 0; at < length;) {
      const ssize_t got = ::write(fd.get(), reinterpret_cast<const char*>(block.data()) + at, length - at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FailErrno(EscapeBytes(path), errno);
      at += static_cast<uint64_t>(got);
    }
    done += length;
    TRY_STATUS(written(length));
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

Result<SetNeeds> CheckSpace(const std::string& path, const MadeSetOptions& options, Seed seed) {
  constexpr uint64_t kLostPerFile = 4096;  // at most, at the end of each
  SetNeeds needs;
  for (const uint64_t size : MakeSizes(options, seed)) needs.bytes += size + kLostPerFile;
  needs.space = TRY(ReadFreeSpace(path));
  needs.reserved_bytes =
      static_cast<uint64_t>(options.least_free_share * static_cast<double>(needs.space.total_bytes));
  if (needs.bytes + needs.reserved_bytes > needs.space.free_bytes)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("{}: the set takes {} bytes, {} are free, and {} must stay free; use fewer or "
                            "smaller samples (--samples, --sample-bytes)",
                            EscapeBytes(path), needs.bytes, needs.space.free_bytes, needs.reserved_bytes));
  return needs;
}

Result<MadeSet> MadeSet::Make(const std::string& path, const MadeSetOptions& options, Seed seed,
                              const Clock& clock, const std::stop_token& stop) {
  RemoveOrphans(path, ReadHostIdentity());
  TRY_STATUS(CheckSpace(path, options, seed));
  const std::vector<uint64_t> sizes = MakeSizes(options, seed);
  MadeSet set(TRY(OwnedFolder::Make(path)));
  Random random = seed.Stream("contents").MakeRandom();
  std::vector<uint64_t> block(kBlock / 8);
  const Instant begin = clock.Now();
  double written = 0;
  std::string parent;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string file = set.folder() + "/" + SampleName(static_cast<int64_t>(i));
    if (const std::string folder = fs::path(file).parent_path().string(); folder != parent) {
      TRY_STATUS(MakeFolders(folder));
      parent = folder;
    }
    TRY_STATUS(WriteSample(file, sizes[i], random, block, [&](uint64_t bytes) -> Status {
      if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while the set was written");
      written += static_cast<double>(bytes);
      if (options.max_bytes_per_s > 0) SleepUntil(begin + FromSeconds(written / options.max_bytes_per_s));
      return {};
    }));
    set.samples_.push_back({file, sizes[i]});
  }
  return set;
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
