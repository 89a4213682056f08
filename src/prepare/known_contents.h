// Which contents have come before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/error.h"

namespace weir::prepare {

// Some 40 bytes a content. One thread at a time.
class KnownContents {
 public:
  // `hash`: XXH3-128, 32 hex digits. False where it was known.
  bool Add(std::string_view hash);
  // All that a set's manifest has, up to its byte `bytes`.
  Status AddManifest(const std::string& path, int64_t bytes);

  // What a reject of such a content says.
  static std::string Detail(std::string_view hash);

 private:
  struct Key {
    uint64_t high, low;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return key.low; }  // a hash already
  };
  static Key KeyOf(std::string_view hash);

  std::unordered_set<Key, Hash> known_;
};

}  // namespace weir::prepare
