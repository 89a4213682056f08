#include "base/seed.h"

#include <cmath>
#include <numbers>

namespace weir {
namespace {

uint64_t SplitMix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t RotateLeft(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix(seed);
}

uint64_t Random::Next() {
  const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

double Random::Uniform(double low, double high) { return low + (high - low) * Uniform(); }

int64_t Random::Integer(int64_t low, int64_t high) {
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  if (range == 0) return static_cast<int64_t>(Next());
  const uint64_t limit = range * (UINT64_MAX / range);  // numbers from here on would favour the low values
  uint64_t value = Next();
  while (value >= limit) value = Next();
  return low + static_cast<int64_t>(value % range);
}

double Random::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
  const double angle = 2 * std::numbers::pi * Uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

Seed Seed::Stream(std::string_view purpose) const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return Stream(hash);
}

Seed Seed::Stream(uint64_t index) const {
  uint64_t state = value_ ^ (index * 0xd1342543de82ef95 + 0x2545f4914f6cdd1d);
  return Seed(SplitMix(state));
}

}  // namespace weir
