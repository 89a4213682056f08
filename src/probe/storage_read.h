// Whole-file reads, each step of them timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_set.h"

namespace weir::probe {

enum class Access { kPool, kMmap, kMemory };

struct ReadOptions {
  Access access = Access::kPool;
  bool direct = false;    // O_DIRECT, with kPool only
  bool cold = true;       // forget each file's pages once it was read
  Duration added{};       // delay put on top of each read
  size_t most_bytes = 0;  // of the largest sample
};

// Moments of one read. The look at the page cache lies between opened and began, and counts for neither.
struct ReadMoments {
  Instant begin{}, opened{}, began{}, read{}, closing{}, closed{};
  uint64_t bytes = 0;
  std::optional<uint64_t> cached_bytes;  // in the page cache before the read; nothing where nobody tells
};

// Reads samples into a buffer of its own. One thread at a time; Make is called on any.
class SampleReader {
 public:
  static Result<std::unique_ptr<SampleReader>> Make(const ReadOptions& options, const Clock& clock);
  virtual ~SampleReader() = default;
  // kIo (also for a file that is shorter than `sample` says), kNotFound; the message names the file.
  virtual Result<ReadMoments> Read(const StorageSample& sample) = 0;
};

// Returns how many bytes of the sample are in the page cache (cachestat(2), of Linux 6.5). Nullopt where the
// kernel does not tell.
std::optional<uint64_t> CachedBytes(int fd, const StorageSample& sample);

// Writes out what of the file is not on the disk yet and tells the kernel to forget its pages. kIo.
Status ForgetPages(const std::string& path);

}  // namespace weir::probe
