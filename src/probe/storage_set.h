// The files a storage probe reads: a set of its own making, or a folder of the user's, which is only read.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/choices.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "dataset/set.h"
#include "probe/storage_owner.h"
#include "probe/storage_watch.h"

namespace weir::probe {

struct StorageSample {
  enum class Place {
    kFile,      // a file of its own
    kSequence,  // in a shard that is read from begin to end
    kRecord,    // in a shard whose records are read in any order
  };
  std::string path;
  uint64_t bytes = 0;   // to read
  uint64_t offset = 0;  // of the first of them in the file
  Place place = Place::kFile;
  std::string hash;  // of the bytes (dataset::HashOf); empty: not known
};

// Forms of a set. Shards hold at most `shard_bytes`, and at least one sample. kTar: ustar, a member for each
// sample. kTfrecord: length, CRC, sample, CRC. kRaw: records of one size, each at a multiple of 4096 bytes.
using dataset::SetFormat;
enum class SizeDistribution { kLogNormal, kNormal, kUniform };
inline constexpr Choices<SizeDistribution, 3> kSizeDistributions{
    {{SizeDistribution::kLogNormal, "log-normal"},
     {SizeDistribution::kNormal, "normal"},
     {SizeDistribution::kUniform, "uniform"}}};

struct MadeSetOptions {
  int64_t samples = 1000;
  double mean_bytes = 115'000;
  double deviation_bytes = 0;  // of the sizes; 0: all alike
  SizeDistribution distribution = SizeDistribution::kLogNormal;
  SetFormat format = SetFormat::kFiles;
  uint64_t shard_bytes = uint64_t{256} << 20;
  bool hashes = false;  // keep a checksum of each sample
  // Encoded JPEG pictures that the samples are copies of, each with a comment of its own by chance, so that
  // no two files are alike. Empty: bytes by chance of the sizes above.
  std::vector<std::string> pictures;
  double max_bytes_per_s = 0;      // of writing; 0: no limit
  double least_free_share = 0.05;  // of the file system, which stays free
  Duration timeout = 10s;          // of one write or sync of at most a shard
};

// Sizes of the samples, in order; the same for the same seed. At least one byte each.
std::vector<uint64_t> MakeSizes(const MadeSetOptions& options, Seed seed);

// Space of a file system.
struct FreeSpace {
  uint64_t free_bytes = 0, total_bytes = 0;
};
// Returns the bytes that this user may write into `path` now. kIo, kNotFound.
Result<FreeSpace> ReadFreeSpace(const std::string& path);

// Whether a set fits: bytes with what the file system may add at the end of each file, and bytes that must
// stay free. kOverloaded with the remedy where it does not.
struct SetNeeds {
  uint64_t bytes = 0, reserved_bytes = 0;
  FreeSpace space;
};
Result<SetNeeds> CheckSpace(const std::string& path, const MadeSetOptions& options, Seed seed);
// The same of a set in each path; those on one file system must fit together. `more_bytes` are written into
// the first path besides.
Result<std::vector<SetNeeds>> CheckSpaces(const std::vector<std::string>& paths,
                                          const MadeSetOptions& options, Seed seed, uint64_t more_bytes);

// kNotFound for a path that is no folder; kInvalidArgument for one that is named twice.
Status CheckPaths(const std::vector<std::string>& paths);

// A made set in an OwnedFolder below a folder; removed with its holder. One thread at a time.
class MadeSet {
 public:
  // Removes the orphans below `path`, checks the free space, and writes the files with bytes that do not
  // compress, each synced to the disk. kOverloaded where the space does not suffice, kCancelled after a stop,
  // kInvalidArgument for raw records of several sizes; nothing of the set stays then. kDeadline where a write
  // does not end: it stays behind with its thread, and the next probe removes the set. `clock` must outlive
  // that thread.
  static Result<MadeSet> Make(const std::string& path, const MadeSetOptions& options, Seed seed,
                              const Clock& clock, const std::stop_token& stop);
  MadeSet(MadeSet&& other) noexcept = default;
  MadeSet& operator=(MadeSet&&) = delete;
  ~MadeSet() { folder_.Remove(); }

  const std::vector<StorageSample>& samples() const { return samples_; }
  const std::string& folder() const { return folder_.path(); }  // also for the sets that are prepared of it

 private:
  explicit MadeSet(OwnedFolder folder) : folder_(std::move(folder)) {}
  static Result<MadeSet> Write(const std::string& path, const MadeSetOptions& options, Seed seed,
                               const Clock& clock, const std::stop_token& stop, const Moved& moved);

  OwnedFolder folder_;
  std::vector<StorageSample> samples_;
};

// All regular files below `folder`, in byte order of their paths; empty files and links are left out.
// kNotFound; kInvalidArgument where there is none.
Result<std::vector<StorageSample>> ListSamples(const std::string& folder);

// Divides the samples into records of `bytes`, each at a multiple of them; the rest at the end of a sample is
// left out. kInvalidArgument where no sample has as many bytes.
Result<std::vector<StorageSample>> DivideIntoRecords(const std::vector<StorageSample>& samples,
                                                     uint64_t bytes);

// Returns the bytes of a file that reads need no disk for: holes, and extents that were reserved but never
// written. Nullopt where the file system has no list of extents (FIEMAP).
std::optional<uint64_t> UnwrittenBytes(const std::string& path);

}  // namespace weir::probe
