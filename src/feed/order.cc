#include "feed/order.h"

#include "base/error.h"
#include "feed/chance.h"

namespace weir::feed {

Permutation::Permutation(uint64_t key, uint64_t count) : count_(count) {
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < count) ++half_bits_;
  uint64_t state = Mix(key);
  for (uint64_t& round_key : keys_) round_key = state = Mix(state);
}

uint64_t Permutation::At(uint64_t position) const {
  CHECK(position < count_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = position;
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (Mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= count_);
  return value;
}

uint64_t Permutation::PositionOf(uint64_t value) const {
  CHECK(value < count_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t position = value;
  do {
    uint64_t left = position >> half_bits_, right = position & mask;
    for (auto key = keys_.rbegin(); key != keys_.rend(); ++key) {
      const uint64_t before = right ^ (Mix(left ^ *key) & mask);
      right = left;
      left = before;
    }
    position = left << half_bits_ | right;
  } while (position >= count_);
  return position;
}

}  // namespace weir::feed
