// The files of a cache in a folder.
//
// "data" has the samples one after the other, each a header of 16 bytes (u32 width, height, channels, all 0
// for encoded bytes, and a zero) and its bytes. "index" begins with 64 bytes ("WEIRFCH1", then zeros), then
// has 32 bytes for each sample: u64 key, u64 offset in data, u64 bytes with the header, u64 XXH3-64 of those
// bytes and the key. Little-endian. An entry is written after its data, under a lock of the index file, so
// what a kill leaves without an entry is written over.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace weir::feed {

struct CacheEntry {
  uint64_t key, offset, bytes, hash;
};
static_assert(sizeof(CacheEntry) == 32);
inline constexpr size_t kCacheIndexBegin = 64;

// Reads entries of an index from after its header. An entry that cannot be true is left out: it is out of the
// range of `data_bytes`, or too short for a header.
std::vector<CacheEntry> ParseCacheEntries(std::span<const std::byte> bytes, uint64_t data_bytes);

}  // namespace weir::feed
