// The index of identities: named vectors in a folder, searched by cosine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "identity/disk.h"
#include "identity/fetch.h"
#include "identity/log.h"
#include "identity/manifest.h"
#include "identity/search.h"
#include "identity/team.h"
#include "identity/vectors_file.h"

namespace weir::identity {

struct IndexFacts {
  size_t dimension = 0;
  int bits = 1;            // of the codes, a value
  std::string model_hash;  // of the model that made the embeddings; empty where none was named
  uint64_t rows = 0;       // vectors
  uint64_t sealed = 0;     // of them in sealed files
  uint64_t segments = 0;   // sealed files
  uint64_t lists = 0, probes = 0, candidates = 0;  // of the largest sealed file
  uint64_t resident_bytes = 0;                     // of codes and lists in memory
  uint64_t file_bytes = 0;                         // of sealed files
  uint64_t torn_bytes = 0;  // of an unfinished record at the end of the log, which was never acknowledged
};

// An index in a folder. One process at a time may open it to write; others read and follow it. Threads: any.
// A search never waits for the disk of an enrolment or for sealing.
class Index {
 public:
  enum class Access { kRead, kWrite };
  struct CreateOptions {
    size_t dimension = 0;      // 2 to kMaxDimension
    std::string model_hash;    // of the model that makes the embeddings
    int bits = 0;              // of codes: 1, 2, 4; 0: by the dimension
    double mate_cosine = 0.4;  // of the hardest mate that shall be found; above 0, below 1
  };
  // Makes an empty index in `folder`, which must not be one already.
  static Status Create(const std::string& folder, const CreateOptions& options);

  struct Options {
    Access access = Access::kRead;
    std::string model_hash;  // of the model that makes the queries; empty: not compared
    RowAccess rows = RowAccess::kMap;
    int threads = 1;           // of one search or build
    Duration storage_delay{};  // see RowFetcher
    // kWrite: seals in the background once `seal_rows` rows wait in the log. kRead: follows what another
    // process writes, every 25 ms.
    bool background = false;
    uint64_t seal_rows = 8192;
    Disk* disk = nullptr;  // for tests; must outlive the index
  };
  // kNotFound where the folder holds no index; kCorrupt for damaged files; kInvalidArgument where the index
  // was made with another model; kOverloaded where another process has it open to write.
  static Result<std::unique_ptr<Index>> Open(const std::string& folder, const Options& options);
  ~Index();

  IndexFacts facts() const EXCLUDES(mutex_);
  const std::string& folder() const { return folder_; }
  size_t dimension() const { return rotation_.dimension(); }
  const std::string& model_hash() const { return model_hash_; }

  // Adds rows. Waits for the disk once for all of them: rows that were enrolled without an error survive a
  // kill and are found by every later search. After an error none of them is enrolled.
  Status Enrol(std::span<const Enrolment> rows) EXCLUDES(write_mutex_, mutex_);
  // Removes every vector of these names: when it returns without an error, no file of the index holds one.
  // Returns how many there were; kNotFound names a name that is not there, and then nothing is removed.
  Result<uint64_t> Delete(std::span<const std::string> names)
      EXCLUDES(maintenance_mutex_, write_mutex_, mutex_);
  // Moves rows from the log into sealed files. kAll also makes one file of all sealed files.
  enum class SealScope { kTail, kAll };
  Status Seal(SealScope scope) EXCLUDES(maintenance_mutex_, write_mutex_, mutex_);
  // Adds all vectors of a source as one sealed file, without the log; they are there when it returns, or none
  // is. Memory: codes of all vectors and their names. `progress` gets the vectors read so far.
  Result<uint64_t> Fill(VectorSource& source, const std::function<void(uint64_t)>& progress,
                        const std::stop_token& stop) EXCLUDES(maintenance_mutex_, write_mutex_, mutex_);
  // Reads what another process has written since. kRead only.
  Status Refresh() EXCLUDES(write_mutex_, mutex_);
  // Returns the error of the last work in the background; nullopt after a success.
  std::optional<Error> background_error() const EXCLUDES(mutex_);

  struct SearchOptions {
    size_t best = 5;        // names a query, each with its best row
    double threshold = -1;  // the least cosine of a match
    size_t probes = 0;      // lists; 0: as calibrated
    size_t candidates = 0;  // rows that are ranked again; 0: as calibrated
  };
  // Returns the matches of each query, best first. The queries share the passes over lists.
  Result<std::vector<std::vector<Match>>> Search(std::span<const std::vector<float>> queries,
                                                 const SearchOptions& options,
                                                 SearchCost* cost = nullptr) const EXCLUDES(mutex_);
  // Returns the score that a share `false_alarms` of strangers reaches among the rows enrolled now. Measures
  // it where the number of rows has changed much since it was measured. Errors as ThresholdFor.
  Result<double> Threshold(double false_alarms) const EXCLUDES(mutex_);

  // Calls `visit` with each row, sealed ones first, until it fails.
  Status ForEach(const std::function<Status(const RowView& row)>& visit) const EXCLUDES(mutex_);
  // Returns the vector of a row, of length 1.
  std::vector<float> VectorOf(const RowView& row) const;
  // Reads every byte of every file. kCorrupt names the first fault.
  Status Verify(const std::stop_token& stop) const EXCLUDES(mutex_);

 private:
  Index(std::string folder, const Options& options, const Manifest& manifest);
  std::string LogPath(uint64_t number) const;
  std::string SegmentPath(uint64_t number) const;
  Status Start(UniqueFd lock);
  Status Reload(const Manifest& manifest, std::string text) REQUIRES(write_mutex_) EXCLUDES(mutex_);
  Status ReloadUntilStill() REQUIRES(write_mutex_) EXCLUDES(mutex_);
  void AddToTail(std::string_view name, const QuantisedVector& vector) REQUIRES(mutex_);
  Result<std::vector<QuantisedVector>> QuantiseAll(std::span<const Enrolment> rows) const;
  Status CheckWritable() const REQUIRES(write_mutex_);
  Status WriteManifest(const Manifest& manifest) REQUIRES(write_mutex_);
  Result<size_t> RotateLog() REQUIRES(maintenance_mutex_) EXCLUDES(write_mutex_, mutex_);
  // Writes rows of `sources` but those of `dead` names into one file and opens it; nullopt where no row is
  // left.
  struct NewSegment {
    Manifest::SegmentEntry entry;
    SegmentUse use;
  };
  Result<std::optional<NewSegment>> WriteRows(const std::vector<const RowSource*>& sources,
                                              std::vector<RowId> rows, const std::stop_token& stop)
      REQUIRES(maintenance_mutex_) EXCLUDES(write_mutex_, mutex_);
  struct Change {
    std::vector<uint64_t> removed;  // numbers of sealed files
    std::optional<NewSegment> added;
    bool logs_are_sealed = false;  // all logs but the last go: their rows are in the frozen blocks
    size_t frozen = 0;             // blocks of the tail that `added` or nothing holds now
  };
  Status Commit(Change change, const std::stop_token& stop) REQUIRES(maintenance_mutex_)
      EXCLUDES(write_mutex_, mutex_);
  Snapshot TakeSnapshot() const EXCLUDES(mutex_);
  std::unique_ptr<RowFetcher> TakeFetcher() const EXCLUDES(mutex_);
  void GiveFetcher(std::unique_ptr<RowFetcher> fetcher) const EXCLUDES(mutex_);
  void Maintain(const std::stop_token& stop);

  const std::string folder_, model_hash_;
  const Options options_;
  Disk own_disk_;
  Disk& disk_;
  const CodeLayout layout_;
  const Rotation rotation_;
  const uint64_t owner_;
  const SteadyClock clock_;
  UniqueFd lock_;
  mutable Team team_;
  Team build_team_;  // so that a build in the background leaves the threads of searches alone

  Mutex maintenance_mutex_;  // one seal, delete or fill at a time; taken before the others

  Mutex write_mutex_;  // taken before mutex_
  Manifest manifest_ GUARDED_BY(write_mutex_);
  std::string manifest_text_ GUARDED_BY(write_mutex_);
  UniqueFd log_ GUARDED_BY(write_mutex_);
  uint64_t log_records_ GUARDED_BY(write_mutex_) = 0;
  uint64_t log_bytes_ GUARDED_BY(write_mutex_) = 0;
  bool log_failed_ GUARDED_BY(write_mutex_) = false;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<SegmentUse> segments_ GUARDED_BY(mutex_);
  std::vector<uint64_t> segment_numbers_ GUARDED_BY(mutex_);
  std::vector<TailPart> tail_ GUARDED_BY(mutex_);
  std::shared_ptr<TailBlock> open_block_ GUARDED_BY(mutex_);  // the last of tail_; null: a new one is begun
  uint64_t tail_rows_ GUARDED_BY(mutex_) = 0;
  uint64_t torn_bytes_ GUARDED_BY(mutex_) = 0;
  mutable StrangerScores strangers_ GUARDED_BY(mutex_);
  mutable std::vector<std::unique_ptr<RowFetcher>> fetchers_ GUARDED_BY(mutex_);
  std::optional<Error> background_error_ GUARDED_BY(mutex_);

  std::jthread maintainer_;
};

// Writes every name and vector as JSON lines into a file for its owner alone, whole or not at all. Returns
// their number. kCancelled after `stop`.
Result<uint64_t> ExportVectors(const Index& index, const std::string& path, const std::stop_token& stop);

}  // namespace weir::identity
