#pragma once

#include <array>
#include <cstdint>

namespace weir::feed {

// A keyed permutation of [0, count): a balanced Feistel network with cycle walking.
// Takes O(1) memory and is immutable, so any thread may call it. The same seed, epoch and count give the same order.
class Order {
 public:
  Order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t count);

  // Returns the sample at a position; position must be below count.
  [[nodiscard]] std::uint64_t At(std::uint64_t position) const;

 private:
  static constexpr int kRounds = 6;
  std::uint64_t count_;
  int half_bits_ = 1;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace weir::feed
