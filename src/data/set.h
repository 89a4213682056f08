// Prepared data sets: a folder with set.json (facts), manifest.jsonl (one line a picture), rejects.jsonl (one
// line a reject), and the pictures: `files` (encoded, in pictures/) or `raw` (uint8 records of one size in
// shards/). Nothing in it depends on the time, on the folder's own name, or on the number of
// workers. set.json is written last: a folder without one is no set.
//
// A raw shard is a header of 4,096 bytes, then records, each padded with zeros to a multiple of 4,096. All
// shards but the last hold records_per_shard records. The header, little-endian: "WEIRRAW1"; u32 width,
// height, channels, header bytes; u64 record stride, records in this shard, number of the first; then zeros.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "data/recipe.h"

namespace weir::data {

enum class SetFormat { kFiles, kRaw };

struct SetFacts {
  SetFormat format = SetFormat::kFiles;
  int64_t images = 0;
  std::optional<Geometry>
      geometry;  // what the pictures were prepared with; absent: as they came (made or replicated)
  std::optional<Size> size;                 // of every picture, where it is the same
  int channels = 3;                         // of raw records
  int64_t records_per_shard = 0;            // of raw sets
  std::vector<std::string> classes;         // names by label, where known
  int64_t bytes = 0;                        // of all pictures, without padding
  std::map<std::string, int64_t> rejected;  // inputs that are not in the set, by reason
  std::string manifest_hash;                // XXH3-128 of manifest.jsonl, 32 hex digits

  // Bytes of a raw record, and from one to the next. REQUIRES: size.
  int64_t record_bytes() const { return int64_t{size->width} * size->height * channels; }
  int64_t record_stride() const { return (record_bytes() + 4095) / 4096 * 4096; }
};

// One line of manifest.jsonl.
struct SetEntry {
  std::string source;   // where it came from, relative to the folder given, bytes escaped
  std::string path;     // in the set; for raw the shard
  int64_t record = -1;  // its number in the set, for raw
  std::optional<int> label;
  std::string hash;  // XXH3-128 of the picture's bytes in the set, 32 hex digits
  int64_t bytes = 0;
};

// Opens a finished set. Thread-safe.
class PreparedSet {
 public:
  // kNotFound when `folder` has no set.json; kCorrupt names what is wrong (a set whose making was broken off
  // has no set.json).
  static Result<std::shared_ptr<const PreparedSet>> Open(const std::string& folder);
  // True for a folder whose set.json is one of ours (another program's is left alone).
  static bool IsSet(const std::string& folder);
  // True for a folder where the making of a set was begun and broken off.
  static bool IsUnfinished(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const SetFacts& facts() const { return facts_; }
  const std::vector<SetEntry>& entries() const { return entries_; }
  // The pixels of one raw record (uint8, interleaved, geometry's channel order), read from its shard: a shard
  // that is cut meanwhile is kIo, as a file is. REQUIRES: raw, 0 <= index < images.
  Result<Bytes> ReadRecord(int64_t index) const;

 private:
  PreparedSet() = default;
  Status OpenShards();

  std::string folder_;
  SetFacts facts_;
  std::vector<SetEntry> entries_;
  std::vector<UniqueFd> shards_;  // for raw
};

}  // namespace weir::data
