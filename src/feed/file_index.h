// The list of a set's files: 32 bytes a sample and the names, in memory or mapped from a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::feed {

// A list of files in a fixed order. Immutable and thread-safe.
//
// As a file, little-endian: "WEIRFIX2"; u32 128 (bytes of this header), u32 32 (bytes of an entry); u64
// samples, u64 bytes of the names, u64 bytes of the classes; 32 hex digits of the set's hash; 32 of the hash
// of what follows the header; zeros to 128. Then the entries, the names without separators, and the classes,
// each with a line feed.
class FileIndex {
 public:
  struct Entry {
    uint64_t name_begin = 0;  // in the names
    uint32_t name_bytes = 0;
    int32_t label = -1;  // -1: none
    uint64_t bytes = 0;  // of the file; 0: not known
    uint64_t hash = 0;   // the first half of its XXH3-128; 0: not known
  };
  static_assert(sizeof(Entry) == 32);

  // Collects files one after the other.
  class Builder {
   public:
    // `name` is a path in the set's folder, raw bytes.
    void Add(std::string_view name, int32_t label, uint64_t bytes, uint64_t hash);
    int64_t size() const { return static_cast<int64_t>(entries_.size()); }
    // Gives each file that has the label k the label labels[k]. REQUIRES: there is one.
    void Relabel(std::span<const int> labels);
    // `set_hash`: 32 hex digits; empty: the hash of the names and labels.
    std::shared_ptr<const FileIndex> Finish(std::vector<std::string> classes, std::string set_hash) &&;

   private:
    std::vector<Entry> entries_;
    std::string names_;
  };

  // Maps an index from a file. kNotFound; kCorrupt if it is cut or its hash is wrong: delete the file, and it
  // is made anew.
  static Result<std::shared_ptr<const FileIndex>> Map(const std::string& path);
  // Writes the index whole or not at all.
  Status Save(const std::string& path) const;

  ~FileIndex();
  FileIndex(const FileIndex&) = delete;
  FileIndex& operator=(const FileIndex&) = delete;

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  // REQUIRES: 0 <= i < size().
  const Entry& entry(int64_t i) const { return entries_[static_cast<size_t>(i)]; }
  std::string_view name(int64_t i) const;
  const std::vector<std::string>& classes() const { return classes_; }
  const std::string& set_hash() const { return set_hash_; }

 private:
  FileIndex() = default;

  std::span<const Entry> entries_;
  std::string_view names_;
  std::vector<std::string> classes_;
  std::string set_hash_;
  std::vector<Entry> own_entries_;
  std::string own_names_;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

// Reads the parts of an index file that lies in memory, as Map does. For Map and for fuzzers.
struct IndexParts {
  std::span<const FileIndex::Entry> entries;
  std::string_view names;
  std::vector<std::string> classes;
  std::string set_hash;
};
// kCorrupt. REQUIRES: `bytes` is aligned to 8.
Result<IndexParts> ParseIndex(std::span<const std::byte> bytes);

}  // namespace weir::feed
