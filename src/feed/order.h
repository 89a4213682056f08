// A keyed permutation with random access.
#pragma once

#include <array>
#include <cstdint>

namespace weir::feed {

// A permutation of [0, count), chosen by a key: a balanced Feistel network of 6 rounds with cycle walking
// (Black and Rogaway 2002). Takes O(1) memory and is immutable, so any thread may call it.
class Permutation {
 public:
  Permutation(uint64_t key, uint64_t count);

  uint64_t count() const { return count_; }
  // Returns the value at a position. REQUIRES: position < count.
  uint64_t At(uint64_t position) const;
  // Returns the position of a value: At(PositionOf(v)) == v. REQUIRES: value < count.
  uint64_t PositionOf(uint64_t value) const;

 private:
  static constexpr int kRounds = 6;
  uint64_t count_;
  int half_bits_ = 1;
  std::array<uint64_t, kRounds> keys_{};
};

}  // namespace weir::feed
