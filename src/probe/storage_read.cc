#include "probe/storage_read.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "dataset/hash.h"
#include "probe/storage_open_files.h"

namespace weir::probe {
namespace {

constexpr size_t kAlignment = 4096;
// One of so many reads of a warm set asks for its cached part: it costs 3 % of a read of 115 KB.
constexpr uint64_t kWarmAsked = 8;

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<std::byte, FreeMemory>;

Buffer Allocate(size_t bytes) {
  const size_t whole = std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  Buffer buffer(static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole)));
  if (buffer) std::memset(buffer.get(), 1, whole);
  return buffer;
}

// Tells the kernel to forget a sample's pages. The page that it shares with the next sample of a shard stays.
void Forget(int fd, const StorageSample& sample) {
  if (sample.place == StorageSample::Place::kFile) {
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return;
  }
  const uint64_t begin = sample.offset / kAlignment * kAlignment;
  const uint64_t end = (sample.offset + sample.bytes) / kAlignment * kAlignment;
  if (end > begin)
    ::posix_fadvise(fd, static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_DONTNEED);
}

class PoolReader final : public SampleReader {
 public:
  PoolReader(const ReadOptions& options, const Clock& clock, Buffer buffer)
      : options_(options), clock_(clock), buffer_(std::move(buffer)) {}

  Result<ReadMoments> Read(const StorageSample& sample) override {
    ReadMoments moments;
    moments.begin = clock_.Now();
    const bool stays_open = sample.place != StorageSample::Place::kFile;
    UniqueFd opened;
    int fd = stays_open ? files_.Find(sample.path) : -1;
    moments.own_file = fd < 0;
    if (fd < 0) {
      opened = UniqueFd(::open(sample.path.c_str(), O_RDONLY | O_CLOEXEC | (options_.direct ? O_DIRECT : 0)));
      if (!opened.valid()) return FailErrno(EscapeBytes(sample.path), errno);
      fd = opened.get();
    }
    moments.opened = clock_.Now();
    // The kernel reads ahead in a shard, so what lies in the page cache says nothing about one record.
    moments.asked_cache =
        sample.place != StorageSample::Place::kSequence && (options_.cold || warm_reads_++ % kWarmAsked == 0);
    if (moments.asked_cache) moments.cached_bytes = CachedBytes(fd, sample);
    if (opened.valid() && sample.place == StorageSample::Place::kRecord)
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    moments.began = moments.asked_cache ? clock_.Now() : moments.opened;
    if (options_.access == Access::kMmap) {
      TRY_STATUS(Touch(sample, fd));
    } else {
      TRY_STATUS(ReadWhole(sample, fd));
    }
    if (options_.added > Duration{}) SleepUntil(clock_.Now() + options_.added);
    moments.read = moments.closing = clock_.Now();
    if (options_.cold && !options_.direct) {
      Forget(fd, sample);
      moments.closing = clock_.Now();
    }
    if (opened.valid() && stays_open) {
      files_.Keep(sample.path, std::move(opened));
    } else {
      opened = UniqueFd();
    }
    moments.closed = clock_.Now();
    moments.bytes = sample.bytes;
    if (options_.verify) TRY_STATUS(VerifySample(sample, buffer_.get() + lead_));
    return moments;
  }

  std::span<const std::byte> Contents(int, const StorageSample& sample) const override {
    return {buffer_.get() + lead_, sample.bytes};
  }

 private:
  // O_DIRECT reads whole blocks: the ones in which the sample begins and ends are read whole.
  Status ReadWhole(const StorageSample& sample, int fd) {
    const uint64_t lead = lead_ = options_.direct ? sample.offset % kAlignment : 0;
    const uint64_t begin = sample.offset - lead, wanted = sample.bytes + lead;
    uint64_t done = 0;
    while (done < wanted) {
      const uint64_t left = wanted - done;
      const uint64_t length = options_.direct ? (left + kAlignment - 1) / kAlignment * kAlignment : left;
      const ssize_t got = ::pread(fd, buffer_.get() + done, length, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FailErrno(EscapeBytes(sample.path), errno);
      done += static_cast<uint64_t>(got);
      const bool at_end = got == 0 || (options_.direct && done % kAlignment != 0);
      if (at_end && done < wanted) return ShortRead(sample, done - std::min(done, lead));
    }
    return {};
  }

  // Copies out of a mapping, as a loader does that keeps its samples. A file that is cut while it is mapped
  // would end the process, so its length is asked first and the kernel reads the pages.
  Status Touch(const StorageSample& sample, int fd) {
    lead_ = 0;
    const off_t length = ::lseek(fd, 0, SEEK_END);
    if (length < 0) return FailErrno(EscapeBytes(sample.path), errno);
    const auto size = static_cast<uint64_t>(length);
    if (size < sample.offset + sample.bytes) return ShortRead(sample, size - std::min(size, sample.offset));
    const uint64_t lead = sample.offset % kAlignment, bytes = sample.bytes + lead;
    void* mapped =
        ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(sample.offset - lead));
    if (mapped == MAP_FAILED) return FailErrno(EscapeBytes(sample.path), errno);
    constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, of Linux 5.14: a bad page is an error, no signal
    const int error = ::madvise(mapped, bytes, kPopulateRead) == 0 ? 0 : errno;
    if (error == 0) std::memcpy(buffer_.get(), static_cast<const std::byte*>(mapped) + lead, sample.bytes);
    ::munmap(mapped, bytes);
    if (error == EINVAL)
      return Fail(ErrorCode::kUnsupported, "--access mmap needs Linux 5.14 or later; use --access pool");
    if (error != 0) return FailErrno(EscapeBytes(sample.path), error);
    return {};
  }

  const ReadOptions options_;
  const Clock& clock_;
  const Buffer buffer_;
  OpenFiles files_;
  uint64_t lead_ = 0;  // bytes in the buffer before the sample
  uint64_t warm_reads_ = 0;
};

// Infinitely fast storage: copies from memory that lies outside the caches. The harness's own ceiling.
class MemoryReader final : public SampleReader {
 public:
  MemoryReader(const ReadOptions& options, const Clock& clock, Buffer source, size_t source_bytes,
               Buffer buffer)
      : options_(options),
        clock_(clock),
        source_(std::move(source)),
        source_bytes_(source_bytes),
        buffer_(std::move(buffer)) {}

  Result<ReadMoments> Read(const StorageSample& sample) override {
    ReadMoments moments;
    moments.begin = moments.opened = moments.began = clock_.Now();
    Copy(sample);
    if (options_.added > Duration{}) SleepUntil(clock_.Now() + options_.added);
    moments.read = moments.closing = moments.closed = clock_.Now();
    moments.bytes = copied_;
    return moments;
  }

  std::span<const std::byte> Contents(int, const StorageSample&) const override {
    return {buffer_.get(), copied_};
  }

 private:
  void Copy(const StorageSample& sample) {
    if (options_.memory && !options_.memory->empty()) {
      const Bytes& next = (*options_.memory)[at_++ % options_.memory->size()];
      copied_ = std::min(next.size(), options_.most_bytes);
      std::memcpy(buffer_.get(), next.data(), copied_);
      return;
    }
    copied_ = sample.bytes;
    if (at_ + copied_ > source_bytes_) at_ = 0;
    std::memcpy(buffer_.get(), source_.get() + at_, copied_);
    at_ += copied_;
  }

  const ReadOptions options_;
  const Clock& clock_;
  const Buffer source_;
  const size_t source_bytes_;
  const Buffer buffer_;
  size_t at_ = 0;  // next byte of the source, or next sample of options_.memory
  size_t copied_ = 0;
};

}  // namespace

std::unexpected<Error> ShortRead(const StorageSample& sample, uint64_t got) {
  return Fail(ErrorCode::kIo, fmt::format("{}: {} bytes read of {}: the file is shorter than it was",
                                          EscapeBytes(sample.path), got, sample.bytes));
}

Status VerifySample(const StorageSample& sample, const std::byte* bytes) {
  if (sample.hash.empty() || dataset::HashOf({bytes, sample.bytes}) == sample.hash) return {};
  return Fail(ErrorCode::kCorrupt, fmt::format("{}: {} bytes at {} are not the ones that were written",
                                               EscapeBytes(sample.path), sample.bytes, sample.offset));
}

std::optional<uint64_t> CachedBytes(int fd, const StorageSample& sample) {
  constexpr long kCachestat = 451;
  struct {
    uint64_t offset = 0, length = 0;
  } range{sample.offset, sample.bytes};
  struct {
    uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;
  } pages;
  if (::syscall(kCachestat, fd, &range, &pages, 0U) != 0) return std::nullopt;
  return pages.cached * kAlignment;
}

Result<std::unique_ptr<SampleReader>> SampleReader::Make(const ReadOptions& options, const Clock& clock) {
  if (options.access == Access::kUring) return MakeUringReader(options, clock);
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // an added delay is as long as it says, not 50 us more
  Buffer buffer = Allocate(options.most_bytes + 2 * kAlignment);
  constexpr size_t kSource = size_t{64} << 20;
  const size_t source_bytes = std::max(kSource, options.most_bytes);
  Buffer source = options.access == Access::kMemory ? Allocate(source_bytes) : nullptr;
  if (!buffer || (options.access == Access::kMemory && !source))
    return Fail(ErrorCode::kOverloaded,
                fmt::format("no memory for a buffer of {} bytes a reader: fewer --threads need less",
                            options.most_bytes));
  if (options.access == Access::kMemory)
    return std::make_unique<MemoryReader>(options, clock, std::move(source), source_bytes, std::move(buffer));
  return std::make_unique<PoolReader>(options, clock, std::move(buffer));
}

Status ForgetPages(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FailErrno(EscapeBytes(path), errno);
  if (::fsync(fd.get()) != 0 && errno != EROFS && errno != EINVAL) return FailErrno(EscapeBytes(path), errno);
  const int error = ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) return FailErrno(EscapeBytes(path), error);
  return {};
}

}  // namespace weir::probe
