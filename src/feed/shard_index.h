// The list of records of a prepared set with shards: its index.bin, as it lies in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/set.h"
#include "dataset/shard_format.h"

namespace weir::feed {

// One record's place in its shard, as index.bin has it.
struct ShardRecord {
  uint32_t shard;
  int32_t label;
  uint64_t offset, bytes, hash;
};
static_assert(sizeof(ShardRecord) == dataset::kIndexStep);

// The records of an index, and where the last of each shard ends. A view of the index's bytes.
struct ShardIndex {
  std::span<const ShardRecord> records;
  std::vector<uint64_t> ends;  // by shard
};

// Holds the index of a set against its facts. kCorrupt, with `path`, names what is wrong: another number of
// records, a shard out of order, an offset, size or label out of its range. REQUIRES: `bytes` is aligned
// to 8.
Result<ShardIndex> ReadShardIndex(std::span<const std::byte> bytes, const dataset::SetFacts& facts,
                                  const std::string& path);

}  // namespace weir::feed
