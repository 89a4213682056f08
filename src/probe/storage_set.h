// The files a storage probe reads: a set of its own making, or a folder of the user's, which is only read.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"

namespace weir::probe {

struct StorageSample {
  std::string path;
  uint64_t bytes = 0;
};

struct MadeSetOptions {
  int64_t samples = 1000;
  double mean_bytes = 115'000;
  double deviation_bytes = 0;      // of a log-normal distribution; 0: all alike
  double max_bytes_per_s = 0;      // of writing; 0: no limit
  double least_free_share = 0.05;  // of the file system, which stays free
};

// Sizes of the samples, in order; the same for the same seed. At least one byte each.
std::vector<uint64_t> MakeSizes(const MadeSetOptions& options, Seed seed);

// Bytes that a user may write into `path` now. kIo, kNotFound.
struct FreeSpace {
  uint64_t free_bytes = 0, total_bytes = 0;
};
Result<FreeSpace> ReadFreeSpace(const std::string& path);

// A made set below a folder, removed with its holder. The folder is "weir-probe.PID.tmp" and holds the file
// "weir-probe-owner", so that a later run can remove the set of a killed one. One thread at a time.
class MadeSet {
 public:
  // Removes sets below `path` whose process lives no more, checks the free space, and writes the files with
  // bytes that do not compress, each synced to the disk. kOverloaded where the space does not suffice,
  // kCancelled after a stop; nothing of the set stays then.
  static Result<MadeSet> Make(const std::string& path, const MadeSetOptions& options, Seed seed,
                              const Clock& clock, const std::stop_token& stop);
  MadeSet(MadeSet&& other) noexcept;
  MadeSet& operator=(MadeSet&&) = delete;
  ~MadeSet();

  const std::vector<StorageSample>& samples() const { return samples_; }
  const std::string& folder() const { return folder_; }

 private:
  explicit MadeSet(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;  // empty: moved from
  std::vector<StorageSample> samples_;
};

// Removes the made sets below `path` that processes which live no more have left; tells how many. Removes
// only the probe's own files: others in such a folder stay, and the folder with them.
int RemoveLeftSets(const std::string& path);

// All regular files below `folder`, in byte order of their paths; empty files and links are left out.
// kNotFound; kInvalidArgument where there is none.
Result<std::vector<StorageSample>> ListSamples(const std::string& folder);

// Bytes of a file that reads need no disk for: holes and extents that were reserved but never written.
// Nothing where the file system does not tell.
std::optional<uint64_t> UnwrittenBytes(const std::string& path);

}  // namespace weir::probe
