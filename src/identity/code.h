// Rows as the index keeps them: int8 values for the exact score, few-bit codes for the scan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "identity/kernels.h"
#include "identity/rotation.h"

namespace weir::identity {

constexpr size_t kMaxDimension = 16384, kMaxName = 255;

// A rotated unit vector: values[i] * scale approximates it.
struct QuantisedVector {
  std::vector<int8_t> values;
  float scale = 0;
};

// Scales `vector` to length 1, rotates and quantises it. kInvalidArgument for a length of zero, one that no
// float holds, and for values that are not finite.
Result<QuantisedVector> Quantise(std::span<const float> vector, const Rotation& rotation);
// Quantises a vector of any length above zero that is rotated already.
QuantisedVector QuantiseRotated(std::span<const float> rotated);

// kInvalidArgument for names that are empty, longer than kMaxName bytes or hold a control character.
Status CheckName(std::string_view name);

// Returns the cosine of two rows.
double Cosine(const int8_t* a, float a_scale, const int8_t* b, float b_scale, size_t dimension);

// Codes of `bits` bits a value, 1, 2 or 4. The code of value i is the middle of one of 2^bits equal steps:
// v = 2 u - (2^bits - 1) for u in [0, 2^bits). Bit b of u is bit i % 8 of byte b * (dimension + 7) / 8 + i
// / 8.
struct CodeLayout {
  size_t dimension = 0;
  int bits = 1;
  size_t plane_bytes() const { return (dimension + 7) / 8; }
  size_t columns() const { return plane_bytes() * static_cast<size_t>(bits); }
  // Returns the bits that a dimension needs for at least 48 bytes of code, at most 4.
  static int BitsFor(size_t dimension);
};

// Encodes `residual` (a row less the centre of its list) into layout.columns() bytes. Returns the factor f,
// for which the product of a query and the residual is about f times the product of the query and the code
// (RaBitQ's unbiased estimate: f = |r|^2 / <code, r>; Gao and Long, SIGMOD 2024 and 2025).
float Encode(std::span<const float> residual, const CodeLayout& layout, uint8_t* code);

// Returns the tables of a rotated query.
QueryTables MakeTables(std::span<const float> query, const CodeLayout& layout);

}  // namespace weir::identity
