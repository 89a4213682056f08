#include "identity/rotation.h"

#include <cmath>

#include "base/error.h"
#include "base/seed.h"

namespace weir::identity {

Rotation::Rotation(size_t dimension) : dimension_(dimension) {
  CHECK(dimension > 0);
  while (power_ * 2 <= dimension_) power_ *= 2;
  scale_ = 1 / std::sqrt(static_cast<float>(power_));
  Random random(0x77656972);  // part of the file format
  for (size_t i = 0; i < kRounds * dimension_; ++i)
    signs_.push_back((random.Next() >> 63) != 0 ? 1.0F : -1.0F);
}

void Rotation::Transform(float* values) const {
  for (size_t half = 1; half < power_; half *= 2) {
    for (size_t begin = 0; begin < power_; begin += 2 * half) {
      float* const low = values + begin;
      float* const high = low + half;
      for (size_t i = 0; i < half; ++i) {
        const float a = low[i], b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
  }
  for (size_t i = 0; i < power_; ++i) values[i] *= scale_;
}

void Rotation::Apply(std::span<float> vector) const {
  CHECK(vector.size() == dimension_);
  for (int round = 0; round < kRounds; ++round) {
    const float* const signs = signs_.data() + static_cast<size_t>(round) * dimension_;
    for (size_t i = 0; i < dimension_; ++i) vector[i] *= signs[i];
    Transform(vector.data() + (round % 2 == 0 ? 0 : dimension_ - power_));
  }
}

void Rotation::Undo(std::span<float> vector) const {
  CHECK(vector.size() == dimension_);
  for (int round = kRounds - 1; round >= 0; --round) {
    const float* const signs = signs_.data() + static_cast<size_t>(round) * dimension_;
    Transform(vector.data() + (round % 2 == 0 ? 0 : dimension_ - power_));
    for (size_t i = 0; i < dimension_; ++i) vector[i] *= signs[i];
  }
}

}  // namespace weir::identity
