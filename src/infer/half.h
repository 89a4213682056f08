// The two 16-bit floats, FP16 (IEEE 754 binary16) and BF16 (the upper half of a float).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace weir::infer {

// Elements of a tensor as they lie in memory. Each converts from the nearest value, ties to even: what is too
// large becomes an infinity.
struct Fp16 {
  uint16_t bits = 0;

  Fp16() = default;
  explicit Fp16(double value) : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(value))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};

struct Bf16 {
  uint16_t bits = 0;

  Bf16() = default;
  explicit Bf16(double value) {
    const auto whole = std::bit_cast<uint32_t>(static_cast<float>(value));
    constexpr uint32_t kQuiet = 0x0040'0000;  // a NaN stays one whatever bits it loses
    bits = static_cast<uint16_t>((std::isnan(value) ? whole | kQuiet : whole + 0x7fff + (whole >> 16 & 1)) >>
                                 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace weir::infer
