#include "feed/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/count.h"
#include "dataset/source.h"

namespace weir::feed {

static_assert(std::endian::native == std::endian::little, "an index is read as it lies in memory");

Result<ShardIndex> ReadShardIndex(std::span<const std::byte> bytes, const dataset::SetFacts& facts,
                                  const std::string& path) {
  const auto corrupt = [&](const std::string& why) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: {}", path, why));
  };
  const int64_t wanted = dataset::kIndexBegin + dataset::kIndexStep * facts.images;
  if (std::ssize(bytes) != wanted) {
    return corrupt(fmt::format("{} bytes, and {} pictures take {}: the index is of another set", bytes.size(),
                               Count(facts.images), wanted));
  }
  const std::string begin = dataset::IndexBegin();
  if (std::memcmp(bytes.data(), begin.data(), begin.size()) != 0)
    return corrupt("not the index of a prepared set");
  ShardIndex index;
  index.records = {reinterpret_cast<const ShardRecord*>(bytes.data() + dataset::kIndexBegin),
                   static_cast<size_t>(facts.images)};
  std::vector<uint64_t>& ends = index.ends;
  bool labelled = false;
  for (size_t i = 0; i < index.records.size(); ++i) {
    const ShardRecord& r = index.records[i];
    const auto wrong = [&](const char* why) { return corrupt(fmt::format("record {}: {}", i, why)); };
    // Shards stand one after the other, so a number that skips one is wrong.
    if (r.shard > ends.size()) return wrong("its shard is out of order");
    if (r.shard == ends.size()) ends.push_back(0);
    if (r.bytes > dataset::kMaxFileBytes) return wrong("larger than any picture may be");
    if (r.offset > uint64_t{1} << 60) return wrong("its offset is out of range");
    if (r.label < -1 || (!facts.classes.empty() && r.label >= std::ssize(facts.classes)))
      return wrong("its label is none of the set's classes");
    if (facts.format == dataset::SetFormat::kRaw && static_cast<int64_t>(r.bytes) != facts.record_bytes())
      return wrong("its size is not that of the set's records");
    labelled = labelled || r.label >= 0;
    ends[r.shard] = std::max(ends[r.shard], r.offset + r.bytes);
  }
  TRY_STATUS(CheckLabelRule(facts, labelled, path.substr(0, path.rfind('/'))));
  return index;
}

}  // namespace weir::feed
