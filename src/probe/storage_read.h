// Whole-file reads, each step of them timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/choices.h"
#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_set.h"

namespace weir::probe {

enum class Access { kPool, kMmap, kMemory, kUring };
// Those of a storage.
inline constexpr Choices<Access, 3> kAccesses{
    {{Access::kPool, "pool"}, {Access::kUring, "io_uring"}, {Access::kMmap, "mmap"}}};

struct ReadOptions {
  Access access = Access::kPool;
  bool direct = false;    // O_DIRECT, with kPool and kUring
  bool cold = true;       // forget each file's pages once it was read
  bool verify = false;    // compare each sample with its checksum, after the times were taken
  int ring_depth = 16;    // samples under way in one reader, with kUring
  Duration added{};       // delay put on top of each read
  size_t most_bytes = 0;  // of the largest sample
  // With kMemory: the samples that are copied, in turn, instead of bytes by chance.
  std::shared_ptr<const std::vector<Bytes>> memory;
};

// Moments of one read. The look at the page cache lies between opened and began, and counts for neither.
struct ReadMoments {
  Instant begin{}, opened{}, began{}, read{}, closing{}, closed{};
  uint64_t bytes = 0;
  std::optional<uint64_t> cached_bytes;  // in the page cache before the read; nothing where nobody tells
  bool asked_cache = true;               // false: nobody asked how much was in the page cache
  bool own_file = true;                  // false: the file was open already and stays open
  Duration decode{}, augment{};          // after the close, where samples are decoded

  Instant ready() const { return closed + decode + augment; }
};

struct ReadDone {
  int slot = 0;
  Result<ReadMoments> read;
};

// Reads samples into buffers of its own. One thread at a time; Make is called on any.
class SampleReader {
 public:
  static Result<std::unique_ptr<SampleReader>> Make(const ReadOptions& options, const Clock& clock);
  virtual ~SampleReader() = default;
  // Reads one sample while none is under way. kIo (also for a file that is shorter than `sample` says),
  // kNotFound, kCorrupt for a wrong checksum; the message names the file.
  virtual Result<ReadMoments> Read(const StorageSample& sample) = 0;

  // Returns how many samples may be under way at once.
  virtual int Slots() const { return 1; }
  // Begins a read in a free slot. `sample` must stay until its end.
  virtual void Begin(int slot, const StorageSample& sample) {
    slot_ = slot;
    sample_ = &sample;
  }
  // Waits for the next end of a read. REQUIRES: a read is under way.
  virtual ReadDone Wait() { return {.slot = slot_, .read = Read(*sample_)}; }
  // Returns the bytes of the sample that was read last in a slot. Valid until the next Begin or Read.
  virtual std::span<const std::byte> Contents(int slot, const StorageSample& sample) const = 0;

 private:
  int slot_ = 0;
  const StorageSample* sample_ = nullptr;
};

// A reader by io_uring. kUnsupported where the system or container forbids it.
Result<std::unique_ptr<SampleReader>> MakeUringReader(const ReadOptions& options, const Clock& clock);

// Errors and checks that all readers share.
std::unexpected<Error> ShortRead(const StorageSample& sample, uint64_t got);
Status VerifySample(const StorageSample& sample, const std::byte* bytes);

// Returns how many bytes of the sample are in the page cache (cachestat(2), of Linux 6.5). Nullopt where the
// kernel does not tell.
std::optional<uint64_t> CachedBytes(int fd, const StorageSample& sample);

// Writes out what of the file is not on the disk yet and tells the kernel to forget its pages. kIo.
Status ForgetPages(const std::string& path);

}  // namespace weir::probe
