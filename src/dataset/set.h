// Prepared data sets: a folder with set.json (facts), manifest.jsonl (one line a picture), rejects.jsonl (one
// line a reject), and the pictures: `files` (encoded, in pictures/), or shards in shards/: `tar`
// (WebDataset), `tfrecord` (tf.Example), `raw` (uint8 records of one size). Sets with shards also have
// index.bin, for readers that want a record by its number (shard_format.h). Nothing in a set depends on the
// time, on the folder's own name, or on the number of workers. set.json is written last: a folder without one
// is no set.
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
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/choices.h"
#include "base/error.h"
#include "base/file.h"
#include "dataset/labels.h"
#include "dataset/recipe.h"

namespace weir::dataset {

enum class SetFormat { kFiles, kTar, kTfrecord, kRaw };
// The words are also the shards' extensions.
inline constexpr Choices<SetFormat, 4> kSetFormats{{{SetFormat::kFiles, "files"},
                                                    {SetFormat::kTar, "tar"},
                                                    {SetFormat::kTfrecord, "tfrecord"},
                                                    {SetFormat::kRaw, "raw"}}};
constexpr std::string_view ToString(SetFormat format) { return WordOf(kSetFormats, format); }

// Which part of a work that was split: part `index` (from 1) of `count`.
struct Part {
  int64_t index = 1;
  int64_t count = 1;
  bool operator==(const Part&) const = default;
};

struct SetFacts {
  SetFormat format = SetFormat::kFiles;
  int64_t images = 0;
  std::optional<Geometry>
      geometry;  // what the pictures were prepared with; absent: as they came (made or replicated)
  std::optional<Size> size;                  // of every picture, where it is the same
  int channels = 3;                          // of raw records
  int64_t shard_bytes = 0;                   // no shard is larger, but one that holds a single record
  int64_t records_per_shard = 0;             // of raw sets
  LabelRule label_rule = LabelRule::kGiven;  // kUnknown is only read
  std::vector<std::string> classes;          // names by label, where known
  int64_t bytes = 0;                         // of all pictures, without padding
  std::map<std::string, int64_t> rejected;   // inputs that are not in the set, by reason
  std::string manifest_hash;                 // XXH3-128 of manifest.jsonl, 32 hex digits
  std::string rejects_hash;                  // the same of rejects.jsonl; empty: not known
  // The way it was made, so that it can be made again: the options as one line of JSON (base/json.h, an
  // object), the number of inputs there were before any was split off or rejected, and a hash of their names
  // and labels. Empty and 0 where nobody said.
  std::string options;
  int64_t inputs = 0;
  std::string inputs_hash;
  std::optional<Part> part;  // it holds a part of them only, and is to be joined
  std::string split;         // which share of a split work it holds ("train"); empty: all of the work

  // Bytes of a raw record, and from one to the next. REQUIRES: size.
  int64_t record_bytes() const { return int64_t{size->width} * size->height * channels; }
  int64_t record_stride() const { return (record_bytes() + 4095) / 4096 * 4096; }
};

class PreparedSet;

// One line of manifest.jsonl.
struct SetEntry {
  std::string source;   // where it came from, relative to the folder given, bytes escaped
  int64_t input = -1;   // its number among the sources; -1: not known
  std::string path;     // in the set: its file, or its shard
  int64_t record = -1;  // its number in the set, for sets with shards
  int64_t offset = 0;   // of its bytes in the shard
  std::optional<int> label;
  std::string hash;  // XXH3-128 of the picture's bytes in the set, 32 hex digits
  int64_t bytes = 0;
  int width = 0;            // pixels; 0: not known
  int height = 0;           // pixels
  std::string sha256;       // 64 hex digits; empty: not asked for
  std::string source_hash;  // XXH3-128 of the source's bytes; empty: not known
  int64_t source_bytes = 0;
  std::string source_sha256;
  std::string recipe;  // hash of the geometry it was prepared with; empty: as it came
};

inline constexpr const char* kPartSuffix = ".part";  // of a shard that is not whole yet

// The bytes of one picture, as its entry says, of a set in `folder` that need not be finished. kIo where they
// are not there whole.
Result<Bytes> ReadEntry(const std::string& folder, const SetEntry& entry);

// Reads the set.json of a finished set. kNotFound where there is none, kCorrupt names what is wrong,
// kUnsupported names a version that this program does not read.
Result<SetFacts> ReadSetFacts(const std::string& folder);

// kUnsupported, with the command that numbers its classes anew, for a set of which nobody knows by which rule
// they were numbered. `has_labels`: of its pictures. `where`: the set's folder or URL.
Status CheckLabelRule(const SetFacts& facts, bool has_labels, const std::string& where);
Status CheckLabelRule(const PreparedSet& set);

// Opens a finished set. Thread-safe.
class PreparedSet {
 public:
  // kNotFound when `folder` has no set.json; kCorrupt names what is wrong (a set whose making was broken off
  // has no set.json); kUnsupported as ReadSetFacts.
  static Result<std::shared_ptr<const PreparedSet>> Open(const std::string& folder);
  // True for a folder whose set.json is one of ours (another program's is left alone).
  static bool IsSet(const std::string& folder);
  // True for a folder where the making of a set was begun and has not been finished.
  static bool IsUnfinished(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const SetFacts& facts() const { return facts_; }
  const std::vector<SetEntry>& entries() const { return entries_; }
  // The bytes of one picture of a set with shards: encoded, or of a raw set its pixels (uint8, interleaved,
  // geometry's channel order). A shard that is cut meanwhile is kIo, as a file is. REQUIRES: shards, 0 <=
  // index < images.
  Result<Bytes> ReadRecord(int64_t index) const;

 private:
  PreparedSet() = default;
  Status CheckRecords() const;
  Status OpenShards();

  std::string folder_;
  SetFacts facts_;
  std::vector<SetEntry> entries_;
  struct Shard {
    std::string path;  // inside of the folder
    UniqueFd fd;
  };
  std::vector<Shard> shards_;
  std::vector<uint32_t> shard_of_;  // by record
};

}  // namespace weir::dataset
