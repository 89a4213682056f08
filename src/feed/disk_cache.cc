#include "feed/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "base/file.h"
#include "base/mutex.h"
#include "dataset/file_at.h"
#include "feed/cache.h"

namespace weir::feed {

static_assert(std::endian::native == std::endian::little, "entries are kept as they lie in memory");

namespace {

constexpr char kMagic[] = "WEIRFCH1";

struct SampleHeader {
  uint32_t width, height, channels, zero;
};
static_assert(sizeof(SampleHeader) == 16);

uint64_t HashOf(std::span<const std::byte> sample, uint64_t key) {
  return XXH3_64bits_withSeed(sample.data(), sample.size(), key);
}

// A lock of all processes, for as long as it lives.
class FileLock {
 public:
  explicit FileLock(const UniqueFd& fd) : fd_(fd.get()) {
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FileLock() { ::flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;

 private:
  const int fd_;
};

class DiskCache final : public SampleCache {
 public:
  DiskCache(std::string folder, uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  Status Open() EXCLUDES(mutex_) {
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    if (failed) return FailErrno(folder_, failed.value());
    index_ = TRY(OpenOrMake("index"));
    data_ = TRY(OpenOrMake("data"));
    const MutexLock lock(mutex_);
    const FileLock alone(index_);
    char begin[kCacheIndexBegin] = {};
    const size_t got =
        TRY(dataset::ReadAt(index_, folder_ + "/index", std::as_writable_bytes(std::span(begin)), 0));
    if (got == 0) {
      std::memcpy(begin, kMagic, sizeof kMagic - 1);
      TRY_STATUS(dataset::WriteAt(index_, folder_ + "/index", std::as_bytes(std::span(begin)), 0));
    } else if (std::memcmp(begin, kMagic, sizeof kMagic - 1) != 0) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}/index: not the index of a feed's cache: give another folder", folder_));
    }
    return LoadNew();
  }

  std::optional<Kept> Find(uint64_t key, ReadBuffer& buffer) override EXCLUDES(mutex_) {
    const std::optional<CacheEntry> entry = EntryOf(key);
    if (!entry) return std::nullopt;
    const std::span<std::byte> sample = buffer.Get(entry->bytes);
    const Result<size_t> got =
        dataset::ReadAt(data_, folder_ + "/data", sample, static_cast<int64_t>(entry->offset));
    SampleHeader header{};
    if (got && *got == sample.size()) std::memcpy(&header, sample.data(), sizeof header);
    const Kept kept{RawShape{static_cast<int>(header.width), static_cast<int>(header.height),
                             static_cast<int>(header.channels)},
                    sample.subspan(sizeof header)};
    const bool is_whole = got && *got == sample.size() && HashOf(sample, key) == entry->hash;
    if (is_whole && (header.width == 0 || kept.pixels.bytes() == kept.bytes.size())) return kept;
    const MutexLock lock(mutex_);
    entries_.erase(key);  // it is made again
    return std::nullopt;
  }
  bool Has(uint64_t key) override { return EntryOf(key).has_value(); }

  void Keep(uint64_t key, const Kept& kept) override EXCLUDES(mutex_) {
    const SampleHeader header{static_cast<uint32_t>(kept.pixels.width),
                              static_cast<uint32_t>(kept.pixels.height),
                              static_cast<uint32_t>(kept.pixels.channels), 0};
    std::vector<std::byte> sample(sizeof header + kept.bytes.size());
    std::memcpy(sample.data(), &header, sizeof header);
    if (!kept.bytes.empty()) std::memcpy(sample.data() + sizeof header, kept.bytes.data(), kept.bytes.size());
    CacheEntry entry{key, 0, sample.size(), HashOf(sample, key)};

    const MutexLock lock(mutex_);
    if (is_full_) return;
    const FileLock alone(index_);
    if (!LoadNew() || entries_.contains(key)) return;
    const uint64_t all = data_end_ + sample.size() + index_end_ + sizeof entry;
    entry.offset = data_end_;
    // A disk that is full ends the keeping, and not the feed.
    if (all > max_bytes_ ||
        !dataset::WriteAt(data_, folder_ + "/data", sample, static_cast<int64_t>(entry.offset)) ||
        !dataset::WriteAt(index_, folder_ + "/index", std::as_bytes(std::span(&entry, 1)),
                          static_cast<int64_t>(index_end_))) {
      is_full_ = true;
      return;
    }
    index_end_ += sizeof entry;
    Add(entry);
  }

 private:
  Result<UniqueFd> OpenOrMake(const char* name) const {
    const std::string path = fmt::format("{}/{}", folder_, name);
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd.valid()) return FailErrno(path, errno);
    return fd;
  }
  std::optional<CacheEntry> EntryOf(uint64_t key) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    if (!LoadNew()) return std::nullopt;
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
  }

  void Add(const CacheEntry& entry) REQUIRES(mutex_) {
    entries_.insert_or_assign(entry.key, entry);
    data_end_ = std::max(data_end_, entry.offset + entry.bytes);
  }

  // Takes in the entries that this process has not seen; others may have written them.
  Status LoadNew() REQUIRES(mutex_) {
    struct stat index{}, data{};
    if (::fstat(index_.get(), &index) != 0 || ::fstat(data_.get(), &data) != 0)
      return FailErrno(folder_, errno);
    const auto end = static_cast<uint64_t>(index.st_size);
    if (end < index_end_ + sizeof(CacheEntry)) return {};
    std::vector<std::byte> bytes((end - index_end_) / sizeof(CacheEntry) * sizeof(CacheEntry));
    bytes.resize(TRY(dataset::ReadAt(index_, folder_ + "/index", bytes, static_cast<int64_t>(index_end_))) /
                 sizeof(CacheEntry) * sizeof(CacheEntry));
    for (const CacheEntry& entry : ParseCacheEntries(bytes, static_cast<uint64_t>(data.st_size))) Add(entry);
    index_end_ += bytes.size();
    return {};
  }

  const std::string folder_;
  const uint64_t max_bytes_;
  UniqueFd index_, data_;  // Open sets them, and nothing after it
  Mutex mutex_;
  std::unordered_map<uint64_t, CacheEntry> entries_ GUARDED_BY(mutex_);
  uint64_t data_end_ GUARDED_BY(mutex_) = 0, index_end_ GUARDED_BY(mutex_) = kCacheIndexBegin;
  bool is_full_ GUARDED_BY(mutex_) = false;
};

}  // namespace

std::vector<CacheEntry> ParseCacheEntries(std::span<const std::byte> bytes, uint64_t data_bytes) {
  std::vector<CacheEntry> entries;
  entries.reserve(bytes.size() / sizeof(CacheEntry));
  for (; bytes.size() >= sizeof(CacheEntry); bytes = bytes.subspan(sizeof(CacheEntry))) {
    CacheEntry entry;
    std::memcpy(&entry, bytes.data(), sizeof entry);
    constexpr uint64_t kMostBytes = uint64_t{4} << 30;
    if (entry.bytes >= sizeof(SampleHeader) && entry.bytes <= kMostBytes && entry.offset <= data_bytes &&
        entry.bytes <= data_bytes - entry.offset) {
      entries.push_back(entry);
    }
  }
  return entries;
}

Result<std::shared_ptr<SampleCache>> OpenDiskCache(const std::string& folder, uint64_t max_bytes) {
  auto cache = std::make_shared<DiskCache>(folder, max_bytes);
  TRY_STATUS(cache->Open());
  return cache;
}

}  // namespace weir::feed
