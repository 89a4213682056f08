// Which contents have come before, and where in the sets they went.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "dataset/set_writer.h"
#include "image/reject.h"

namespace weir::prepare {

// Some 60 bytes a content. One thread at a time.
class KnownContents {
 public:
  // Where the first picture of a content is: its line in the manifest of one of the sets that are made.
  struct Place {
    uint32_t set = 0;
    int64_t manifest_byte = 0;
  };

  // `hash`: XXH3-128 of the source's bytes, 32 hex digits; an empty one, of a set that has none, is never
  // known. Keeps the first place of a content.
  void Add(std::string_view hash, Place place);
  // Adds all that the manifest of set `set` has, up to its byte `bytes`.
  Status AddManifest(const std::string& path, int64_t bytes, uint32_t set);

  std::optional<Place> Find(std::string_view hash) const;

 private:
  struct Key {
    uint64_t high, low;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return key.low; }  // a hash already
  };
  static Key KeyOf(std::string_view hash);

  std::unordered_map<Key, Place, Hash> known_;
};

// The reject of picture `input` named `source` (escaped), whose bytes of this hash are those of `twin`.
dataset::RejectEntry DuplicateOf(const dataset::SetEntry& twin, std::string source, int64_t input,
                                 std::string_view hash);

}  // namespace weir::prepare
