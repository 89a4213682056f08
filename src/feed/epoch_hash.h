// A hash of the rows of an epoch that adds up: the sum of the ranks' hashes is that of one rank which takes
// all rows. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::feed {

// The sum, modulo 2^128, of XXH3-128 over each row's position, bytes, mask and label. So it does not depend
// on the order in which rows are added, but on the position of each. A value.
class EpochHash {
 public:
  void Add(int64_t position, int64_t label, std::span<const std::byte> row, std::span<const std::byte> mask);
  EpochHash& operator+=(const EpochHash& more);

  std::string Digest() const;  // 32 hex digits
  // kCorrupt for another text than Digest gives.
  static Result<EpochHash> FromDigest(std::string_view digest);
  bool operator==(const EpochHash&) const = default;

 private:
  uint64_t high_ = 0, low_ = 0;
};

}  // namespace weir::feed
