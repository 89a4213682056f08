#include "feed/order.h"

namespace weir::feed {
namespace {

// Mixes 64 bits; the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

Order::Order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t count) : count_(count) {
  while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < count) ++half_bits_;
  std::uint64_t state = Mix(Mix(seed) ^ epoch);
  for (auto& key : keys_) key = state = Mix(state);
}

std::uint64_t Order::At(std::uint64_t position) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t value = position;
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & mask;
    for (const auto key : keys_) {
      const std::uint64_t next = left ^ (Mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= count_);
  return value;
}

}  // namespace weir::feed
