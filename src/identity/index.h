// The index of identities: named unit vectors in a folder, searched by cosine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "identity/log.h"
#include "identity/segment.h"

namespace weir::identity {

struct Match {
  std::string name;
  double score = 0;  // cosine, from the int8 rows
};

struct IndexFacts {
  size_t dimension = 0;
  std::string model_hash;   // of the model that made the embeddings; empty where none was named
  uint64_t rows = 0;        // deleted ones not counted
  uint64_t sealed = 0;      // of them in sealed files
  uint64_t torn_bytes = 0;  // of an unfinished record at the end of the log, which was never acknowledged
};

// An index in a folder. One process at a time may open it to write. Threads: any; a search never waits for
// the disk of an enrolment.
class Index {
 public:
  enum class Access { kRead, kWrite };

  // Makes an empty index in `folder`, which must not be one already.
  static Status Create(const std::string& folder, size_t dimension, const std::string& model_hash);
  // kNotFound where the folder holds no index; kCorrupt for damaged files; kInvalidArgument where
  // `model_hash` is given and the index was made with another model; kOverloaded where another process has it
  // open to write.
  static Result<std::unique_ptr<Index>> Open(const std::string& folder, Access access,
                                             const std::string& model_hash = "");

  IndexFacts facts() const EXCLUDES(mutex_);

  // Each waits for the disk once, for all of `rows`; what returns without an error survives a kill.
  struct Enrolment {
    std::string name;
    std::vector<float> vector;
  };
  Status Enrol(std::span<const Enrolment> rows) EXCLUDES(write_mutex_, mutex_);
  // Removes every vector of `name` from all files before it returns. Gives how many there were; kNotFound for
  // none.
  Result<uint64_t> Delete(const std::string& name) EXCLUDES(write_mutex_, mutex_);
  // Writes what the log holds, and all that is not deleted, into one sealed file.
  Status Seal() EXCLUDES(write_mutex_, mutex_);

  struct SearchOptions {
    size_t best = 5;           // matches a query
    size_t candidates = 1000;  // rows a query that are ranked again in int8
    double threshold = -1;     // the least cosine of a match
    int threads = 1;
  };
  // Returns the matches of each query, best first. All queries share one pass over the sign codes.
  Result<std::vector<std::vector<Match>>> Search(std::span<const std::vector<float>> queries,
                                                 const SearchOptions& options) const EXCLUDES(mutex_);

  // Returns every row, sealed ones first. The values are the int8 ones times their scale.
  std::vector<Enrolment> Export(bool with_vectors) const EXCLUDES(mutex_);
  // Returns the mean of the squared cosine between rows of different names, for the threshold; nothing where
  // there are fewer than 100 rows. Draws pairs from `seed`.
  std::optional<double> MeanSquaredCosine(uint64_t seed) const EXCLUDES(mutex_);

 private:
  Index(std::string folder, size_t dimension, std::string model_hash);
  Status Load(Access access);
  Status Append(std::span<const LogRecord> records) REQUIRES(write_mutex_);
  Status SealLocked() REQUIRES(write_mutex_) EXCLUDES(mutex_);
  Status Remember(const LogRecord& record) REQUIRES(mutex_);
  Status WriteManifest(uint64_t generation, bool sealed) const;
  std::string LogPath(uint64_t generation) const;
  std::string SegmentPath(uint64_t generation) const;

  const std::string folder_;
  const size_t dimension_;
  const std::string model_hash_;
  UniqueFd lock_;

  Mutex write_mutex_;
  UniqueFd log_ GUARDED_BY(write_mutex_);
  uint64_t log_records_ GUARDED_BY(write_mutex_) = 0;
  uint64_t log_bytes_ GUARDED_BY(write_mutex_) = 0;
  bool log_failed_ GUARDED_BY(write_mutex_) = false;
  uint64_t generation_ GUARDED_BY(write_mutex_) = 1;

  mutable Mutex mutex_;
  std::shared_ptr<const Segment> segment_ GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> dead_ GUARDED_BY(mutex_);  // names deleted from segment_
  uint64_t dead_rows_ GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<const Row>> tail_ GUARDED_BY(mutex_);  // of the log
  uint64_t torn_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::identity
