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
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "dataset/hash.h"
#include "dataset/tar.h"

namespace weir::probe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = size_t{1} << 20;

constexpr size_t kCommentBytes = 1028;  // marker, length and 1,024 bytes

const std::string& PictureOf(const MadeSetOptions& options, int64_t number) {
  return options.pictures[static_cast<size_t>(number) % options.pictures.size()];
}

// Writes the files of a set, one after the other. `written` is called after each block of at most 1 MiB, so
// that the rate holds within large files too. One thread at a time.
class SetFiles {
 public:
  using Written = std::function<Status(uint64_t bytes)>;
  SetFiles(const MadeSetOptions& options, Random random, Written written)
      : options_(options), random_(random), written_(std::move(written)), block_(kBlock / 8) {}

  Status Begin(const std::string& path) {
    path_ = path;
    offset_ = 0;
    fd_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd_.valid()) return FailErrno(EscapeBytes(path), errno);
    return {};
  }

  // Appends a sample with the bytes around it.
  Result<StorageSample> Append(int64_t number, uint64_t bytes) {
    StorageSample sample{.path = path_, .bytes = bytes};
    switch (options_.format) {
      case SetFormat::kFiles:
        TRY_STATUS(Contents(number, sample));
        break;
      case SetFormat::kTar:
        sample.place = StorageSample::Place::kSequence;
        TRY_STATUS(
            Text(dataset::FormatTarHeader(fmt::format("{:08d}.bin", number), static_cast<int64_t>(bytes))));
        TRY_STATUS(Contents(number, sample));
        TRY_STATUS(Text(dataset::TarPadding(static_cast<int64_t>(bytes))));
        break;
      case SetFormat::kTfrecord: {
        sample.place = StorageSample::Place::kSequence;
        const std::string length = LittleEndian(bytes, 8);
        TRY_STATUS(Text(length + Checksum(dataset::Crc32c(std::as_bytes(std::span(length))))));
        TRY_STATUS(Contents(number, sample));
        TRY_STATUS(Text(Checksum(crc_)));
        break;
      }
      case SetFormat::kRaw:
        sample.place = StorageSample::Place::kRecord;
        TRY_STATUS(Contents(number, sample));
        TRY_STATUS(Noise((kPage - offset_ % kPage) % kPage, [](std::span<const std::byte>) {}));
        break;
    }
    return sample;
  }

  Status End() {
    if (options_.format == SetFormat::kTar)
      TRY_STATUS(Text(std::string(static_cast<size_t>(2 * dataset::kTarBlock), 0)));
    if (::fsync(fd_.get()) != 0) return FailErrno(EscapeBytes(path_), errno);
    fd_ = UniqueFd();
    return {};
  }

  bool open() const { return fd_.valid(); }
  uint64_t offset() const { return offset_; }

 private:
  static constexpr uint64_t kPage = 4096;

  static std::string LittleEndian(uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return text;
  }
  static std::string Checksum(uint32_t crc) { return LittleEndian(dataset::MaskCrc32c(crc), 4); }

  Status Write(const char* data, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes;) {
      const ssize_t got = ::write(fd_.get(), data + at, bytes - at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FailErrno(EscapeBytes(path_), errno);
      at += static_cast<uint64_t>(got);
    }
    offset_ += bytes;
    return written_(bytes);
  }
  Status Text(const std::string& text) { return Write(text.data(), text.size()); }

  // Writes bytes by chance and shows each piece to `seen`.
  template <typename Seen>
  Status Noise(uint64_t bytes, const Seen& seen) {
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t length = std::min<uint64_t>(kBlock, bytes - done);
      for (uint64_t i = 0; i < (length + 7) / 8; ++i) block_[i] = random_.Next();
      seen(std::as_bytes(std::span(block_)).first(length));
      TRY_STATUS(Write(reinterpret_cast<const char*>(block_.data()), length));
      done += length;
    }
    return {};
  }

  Status Contents(int64_t number, StorageSample& sample) {
    sample.offset = offset_;
    crc_ = 0;
    dataset::StreamHash hash;
    const auto seen = [&](std::span<const std::byte> piece) {
      if (options_.format == SetFormat::kTfrecord) crc_ = dataset::Crc32c(piece, crc_);
      if (options_.hashes) hash.Add(piece);
    };
    if (options_.pictures.empty()) {
      TRY_STATUS(Noise(sample.bytes, seen));
    } else {
      const std::string picture = WithComment(PictureOf(options_, number));
      seen(std::as_bytes(std::span(picture)));
      TRY_STATUS(Text(picture));
    }
    if (options_.hashes) sample.hash = hash.Digest();
    return {};
  }

  // Puts a comment segment of bytes by chance behind the marker that begins a JPEG.
  std::string WithComment(const std::string& jpeg) {
    std::string comment("\xff\xfe\x04\x02", 4);  // COM, 1,026 bytes with this length
    while (comment.size() < kCommentBytes) comment.push_back(static_cast<char>(random_.Next()));
    return jpeg.substr(0, 2) + comment + jpeg.substr(2);
  }

  const MadeSetOptions& options_;
  Random random_;
  const Written written_;
  std::vector<uint64_t> block_;
  std::string path_;
  UniqueFd fd_;
  uint64_t offset_ = 0;
  uint32_t crc_ = 0;
};

double DrawSize(const MadeSetOptions& options, Random& random) {
  if (options.deviation_bytes <= 0) return options.mean_bytes;
  switch (options.distribution) {
    case SizeDistribution::kNormal:
      return options.mean_bytes + options.deviation_bytes * random.Normal();
    case SizeDistribution::kUniform:
      return options.mean_bytes + options.deviation_bytes * std::sqrt(3.0) * (2 * random.Uniform() - 1);
    case SizeDistribution::kLogNormal:
      break;
  }
  // Mean and deviation of a log-normal distribution give those of its logarithm.
  const double ratio = options.deviation_bytes / options.mean_bytes;
  const double variance = std::log1p(ratio * ratio);
  return std::exp(std::log(options.mean_bytes) - variance / 2 + std::sqrt(variance) * random.Normal());
}

}  // namespace

std::vector<uint64_t> MakeSizes(const MadeSetOptions& options, Seed seed) {
  if (!options.pictures.empty()) {
    std::vector<uint64_t> sizes;
    for (int64_t i = 0; i < options.samples; ++i)
      sizes.push_back(PictureOf(options, i).size() + kCommentBytes);
    return sizes;
  }
  Random random = seed.Stream("sizes").MakeRandom();
  std::vector<uint64_t> sizes(static_cast<size_t>(options.samples));
  for (uint64_t& size : sizes)
    size = static_cast<uint64_t>(std::max(1.0, std::round(DrawSize(options, random))));
  return sizes;
}

Result<FreeSpace> ReadFreeSpace(const std::string& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return FailErrno(EscapeBytes(path), errno);
  return FreeSpace{.free_bytes = info.f_bavail * info.f_frsize, .total_bytes = info.f_blocks * info.f_frsize};
}

Result<SetNeeds> CheckSpace(const std::string& path, const MadeSetOptions& options, Seed seed) {
  return TRY(CheckSpaces({path}, options, seed, 0)).front();
}

Result<std::vector<SetNeeds>> CheckSpaces(const std::vector<std::string>& paths,
                                          const MadeSetOptions& options, Seed seed, uint64_t more_bytes) {
  constexpr uint64_t kLostPerFile = 4096;  // at most, at the end of each
  uint64_t set_bytes = 0;
  for (const uint64_t size : MakeSizes(options, seed)) set_bytes += size + kLostPerFile;
  std::vector<SetNeeds> needs;
  std::map<dev_t, uint64_t> of_device;
  for (const std::string& path : paths) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return FailErrno(EscapeBytes(path), errno);
    SetNeeds one{.bytes = set_bytes + (needs.empty() ? more_bytes : 0), .space = TRY(ReadFreeSpace(path))};
    one.reserved_bytes =
        static_cast<uint64_t>(options.least_free_share * static_cast<double>(one.space.total_bytes));
    const uint64_t all = of_device[info.st_dev] += one.bytes;
    if (all + one.reserved_bytes > one.space.free_bytes)
      return Fail(
          ErrorCode::kOverloaded,
          fmt::format("{}: the probe writes {} bytes, {} are free, and {} must stay free; use fewer or "
                      "smaller samples (--samples, --sample-bytes)",
                      EscapeBytes(path), all, one.space.free_bytes, one.reserved_bytes));
    needs.push_back(one);
  }
  return needs;
}

Status CheckPaths(const std::vector<std::string>& paths) {
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const std::string& path : paths) {
    struct stat info{};
    const bool there = ::stat(path.c_str(), &info) == 0;
    if (!there && errno != ENOENT) return FailErrno(EscapeBytes(path), errno);
    if (!there || !S_ISDIR(info.st_mode)) {
      const std::string name = EscapeBytes(path);
      return Fail(
          ErrorCode::kNotFound,
          fmt::format("{0}: no such folder: make it on the storage to be probed: mkdir -p {0}", name));
    }
    if (!seen.emplace(info.st_dev, info.st_ino).second)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} is named twice: name each storage once", EscapeBytes(path)));
  }
  return {};
}

Result<MadeSet> MadeSet::Make(const std::string& path, const MadeSetOptions& options, Seed seed,
                              const Clock& clock, const std::stop_token& stop) {
  if (options.format == SetFormat::kRaw && options.deviation_bytes > 0)
    return Fail(
        ErrorCode::kInvalidArgument,
        "raw records have one size: leave --sample-deviation out, name a --profile whose samples have "
        "one size, or use another --format");
  const Error hung{ErrorCode::kDeadline,
                   fmt::format("{}: a write did not end within {:g} s: the storage hangs, or is slower than "
                               "--timeout-s allows; the next probe there removes what was written",
                               EscapeBytes(path), Seconds(options.timeout))};
  return RunWatched<MadeSet>(
      [path, options, seed, &clock, stop](const Moved& moved) {
        return Write(path, options, seed, clock, stop, moved);
      },
      options.timeout, hung, clock);
}

Result<MadeSet> MadeSet::Write(const std::string& path, const MadeSetOptions& options, Seed seed,
                               const Clock& clock, const std::stop_token& stop, const Moved& moved) {
  RemoveOrphans(path, ReadHostIdentity());
  TRY_STATUS(CheckSpace(path, options, seed));
  moved(clock.Now());
  const std::vector<uint64_t> sizes = MakeSizes(options, seed);
  MadeSet set(TRY(OwnedFolder::Make(path)));
  const Instant begin = clock.Now();
  double done = 0;
  SetFiles files(options, seed.Stream("contents").MakeRandom(), [&](uint64_t bytes) -> Status {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped while the set was written");
    done += static_cast<double>(bytes);
    const Instant due =
        options.max_bytes_per_s > 0 ? begin + FromSeconds(done / options.max_bytes_per_s) : clock.Now();
    moved(std::max(due, clock.Now()));
    SleepUntil(due);
    moved(clock.Now());
    return {};
  });
  std::string parent;
  int64_t file_number = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool full = options.format == SetFormat::kFiles || files.offset() + sizes[i] > options.shard_bytes;
    if (files.open() && full) TRY_STATUS(files.End());
    if (!files.open()) {
      const std::string file = set.folder() + "/" + SampleName(file_number++);
      if (const std::string folder = fs::path(file).parent_path().string(); folder != parent) {
        TRY_STATUS(MakeFolders(folder));
        parent = folder;
      }
      TRY_STATUS(files.Begin(file));
    }
    set.samples_.push_back(TRY(files.Append(static_cast<int64_t>(i), sizes[i])));
  }
  if (files.open()) TRY_STATUS(files.End());
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

Result<std::vector<StorageSample>> DivideIntoRecords(const std::vector<StorageSample>& samples,
                                                     uint64_t bytes) {
  std::vector<StorageSample> records;
  for (const StorageSample& sample : samples) {
    for (uint64_t at = 0; at + bytes <= sample.bytes; at += bytes)
      records.push_back({.path = sample.path,
                         .bytes = bytes,
                         .offset = sample.offset + at,
                         .place = StorageSample::Place::kRecord});
  }
  if (records.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--record-bytes {}: no file of the set has as many bytes", bytes));
  return records;
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
