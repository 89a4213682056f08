#include "feed/chance.h"

namespace weir::feed {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

namespace {

std::array<uint32_t, 2> KeyOf(uint64_t seed, uint64_t epoch) {
  const uint64_t key = Mix(Mix(seed) ^ epoch);
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

}  // namespace

Chance::Chance(uint64_t seed, uint64_t epoch, uint64_t item, Operation operation)
    : key_(KeyOf(seed, epoch)),
      counter_{0, static_cast<uint32_t>(operation), static_cast<uint32_t>(item),
               static_cast<uint32_t>(item >> 32)} {}

uint32_t Chance::Next() {
  if (used_ == 4) {
    block_ = Philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double Chance::Uniform() {
  const uint64_t high = Next() >> 5, low = Next() >> 6;
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

double Chance::Uniform(double low, double high) { return low + (high - low) * Uniform(); }

int64_t Chance::Integer(int64_t low, int64_t high) {
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  // 64 random bits times the range: the bias is below range / 2^64.
  const uint64_t bits = uint64_t{Next()} << 32 | Next();
  if (range == 0) return static_cast<int64_t>(bits);
  return static_cast<int64_t>(static_cast<uint64_t>(low) +
                              static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * range) >> 64));
}

}  // namespace weir::feed
