// Prepared data sets: a folder with set.json (facts), manifest.jsonl (one line a picture), rejects.jsonl (one line a reject), and
// the pictures: `files` (encoded, in pictures/) or `raw` (uint8 records of one size in shards, for mmap). Nothing in it depends on
// the time, on the folder's own name, or on the number of workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/recipe.h"
#include "data/source.h"

namespace weir::data {

enum class SetFormat { kFiles, kRaw };

struct SetFacts {
  SetFormat format = SetFormat::kFiles;
  int64_t images = 0;
  std::optional<Geometry> geometry;  // what the pictures were prepared with; absent: as they came (made or replicated)
  std::optional<Size> size;          // of every picture, where it is the same
  int channels = 3;                  // of raw records
  std::vector<std::string> classes;  // names by label, where known
};

// One line of manifest.jsonl.
struct SetEntry {
  std::string source;        // where it came from, relative to the folder given, bytes escaped
  std::string path;          // in the set; for raw the shard
  int64_t record = -1;       // in the shard's order, for raw
  std::optional<int> label;
  std::string hash;          // XXH3-128 of the picture's bytes in the set, 32 hex digits
  int64_t bytes = 0;
};

// Opens a finished set. Thread-safe.
class PreparedSet {
 public:
  // kNotFound when `folder` has no set.json; kCorrupt names what is wrong (a set whose making was broken off has no set.json).
  static Result<std::shared_ptr<const PreparedSet>> Open(const std::string& folder);
  static bool IsSet(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const SetFacts& facts() const { return facts_; }
  const std::vector<SetEntry>& entries() const { return entries_; }
  // The pixels of one raw record (uint8, interleaved, geometry's channel order), mapped from the shard. REQUIRES: raw.
  std::span<const std::byte> RawRecord(int64_t index) const;

 private:
  friend class SetWriter;
  PreparedSet() = default;
  std::string folder_;
  SetFacts facts_;
  std::vector<SetEntry> entries_;
  std::vector<Bytes> shards_;     // mapped, for raw
  int64_t records_per_shard_ = 0;
};

}  // namespace weir::data
