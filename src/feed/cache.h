// Samples kept in memory.
#pragma once

#include <cstdint>
#include <memory>

#include "feed/source.h"

namespace weir::feed {

// Returns a source that keeps the bytes of the samples it reads first, until they take `max_bytes` together,
// and reads the others from `source`. Nothing is evicted: in a random order every sample is as likely to come
// next as any other, so an eviction gains nothing. The samples, their order and the hash are those of
// `source`. A sample that cannot be read is not kept. Thread-safe.
std::shared_ptr<const Source> CacheInMemory(std::shared_ptr<const Source> source, uint64_t max_bytes);

}  // namespace weir::feed
