// Samples kept from their first reading: encoded, or decoded to pixels, in memory or in a folder.
//
// Nothing is evicted: in a random order every sample is as likely to come next as any other, so an eviction
// gains nothing. A cache changes neither the order nor a value: what is kept is what would be made again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "feed/picture.h"
#include "feed/source.h"

namespace weir::feed {

struct CacheOptions {
  uint64_t bytes = 0;    // at most; 0: no cache
  std::string folder;    // empty: in memory
  bool decoded = false;  // pixels, and not the encoded bytes
};

// A sample that was kept: its bytes or, where `pixels` has a size, the pixels of its picture, upright.
struct Kept {
  RawShape pixels{0, 0, 0};
  std::span<const std::byte> bytes;
};

// Thread-safe.
class SampleCache {
 public:
  virtual ~SampleCache() = default;
  // Returns what is kept under `key`; its bytes are valid until `buffer` is used again.
  virtual std::optional<Kept> Find(uint64_t key, ReadBuffer& buffer) = 0;
  virtual bool Has(uint64_t key) = 0;
  // Keeps a sample if there is room, and nothing is kept under its key.
  virtual void Keep(uint64_t key, const Kept& kept) = 0;
};

std::shared_ptr<SampleCache> MakeMemoryCache(uint64_t max_bytes);
// Opens or makes the cache in `folder`. Several processes may share it, and it outlives them: after a kill at
// any moment it has whole samples only, and a sample that is damaged later is made again. kCorrupt for files
// that are no cache; kIo.
Result<std::shared_ptr<SampleCache>> OpenDiskCache(const std::string& folder, uint64_t max_bytes);

// Opens the cache that the options ask for; null for none.
Result<std::shared_ptr<SampleCache>> OpenCache(const CacheOptions& options);

}  // namespace weir::feed
