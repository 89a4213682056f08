#include "infer/engines/content_hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace weir::infer {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F, kPrime3 = 0x165667B19E3779F9,
                   kPrime4 = 0x85EBCA77C2B2AE63, kPrime5 = 0x27D4EB2F165667C5;

template <typename T>
uint64_t Load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

uint64_t Round(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

// The whole blocks of 32 bytes, four independent lanes so that their multiplications overlap.
uint64_t HashBlocks(const std::byte*& p, const std::byte* end, uint64_t seed) {
  std::array<uint64_t, 4> lanes{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
  for (; end - p >= 32; p += 32) {
    for (size_t i = 0; i < 4; ++i) lanes[i] = Round(lanes[i], Load<uint64_t>(p + 8 * i));
  }
  uint64_t hash =
      std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
  for (const uint64_t lane : lanes) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  return hash;
}

}  // namespace

uint64_t ContentHash(std::span<const std::byte> data, uint64_t seed) {
  const std::byte* p = data.data();
  const std::byte* const end = p + data.size();
  uint64_t hash = data.size() >= 32 ? HashBlocks(p, end, seed) : seed + kPrime5;
  hash += data.size();
  for (; end - p >= 8; p += 8) hash = std::rotl(hash ^ Round(0, Load<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  if (end - p >= 4) {
    hash = std::rotl(hash ^ (Load<uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) hash = std::rotl(hash ^ (Load<uint8_t>(p) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace weir::infer
