// Entries of a cache's index: none of them lies outside of the data.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "feed/disk_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kDataBytes = 100'000;
  for (const weir::feed::CacheEntry& entry :
       weir::feed::ParseCacheEntries(std::as_bytes(std::span(data, size)), kDataBytes)) {
    CHECK(entry.offset <= kDataBytes && entry.bytes <= kDataBytes - entry.offset);
  }
  return 0;
}
