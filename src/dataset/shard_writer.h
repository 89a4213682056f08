// The shards of a set, one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "dataset/set.h"
#include "dataset/set_writer.h"
#include "dataset/shard_format.h"

namespace weir::dataset {

// One thread at a time.
class ShardWriter {
 public:
  // `facts` must outlive it. Begins, or goes on, where `point` says: the shard that was being filled is cut
  // to its length there. kCorrupt where it is shorter.
  static Result<ShardWriter> Open(const std::string& folder, const SetFacts& facts, const SetPoint& point);

  // Where the next record of this many bytes (with its frame) will stand; closes the shard in hand when it
  // would grow too large.
  Result<int64_t> MakeRoom(int64_t record_bytes);
  Status Append(const Frame& frame, std::span<const std::byte> picture);
  // Gives the shard in hand its end; nothing when there is none.
  Status Close();

  int64_t shard() const { return shard_; }
  int64_t shard_bytes() const { return size_; }
  int64_t shard_records() const { return records_; }
  // The whole shards since the last call, and the one in hand.
  Status TakeUnsettled(Unsettled& into);

 private:
  ShardWriter(std::string folder, const SetFacts& facts) : folder_(std::move(folder)), facts_(&facts) {}
  Status Begin();
  std::string PathOf(int64_t shard) const;

  std::string folder_;
  const SetFacts* facts_;
  int64_t shard_ = 0;  // in hand, or the next one
  UniqueFd fd_;
  int64_t size_ = 0;     // of it
  int64_t records_ = 0;  // in it
  int64_t first_ = 0;    // number of its first record
  int64_t pushed_ = 0;   // of it, that the system was told to write
  std::vector<Unsettled::ClosedShard> closed_;
};

}  // namespace weir::dataset
