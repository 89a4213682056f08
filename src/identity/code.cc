#include "identity/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace weir::identity {
namespace {

// The best step of a uniform quantiser of a normal variable, in standard deviations (Max 1960, table II); 1
// bit keeps the sign only.
double StepOf(int bits) { return bits == 2 ? 0.9957 : 0.3352; }

}  // namespace

Result<QuantisedVector> Quantise(std::span<const float> vector, const Rotation& rotation) {
  double squares = 0;
  for (const float value : vector) {
    if (!std::isfinite(value)) return Fail(ErrorCode::kInvalidArgument, "a value is not a finite number");
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto length = static_cast<float>(std::sqrt(squares));
  if (!(squares > 1e-30)) return Fail(ErrorCode::kInvalidArgument, "its length is zero: it has no direction");
  if (!std::isfinite(length))
    return Fail(ErrorCode::kInvalidArgument,
                "its length is larger than a 32-bit number can be: scale it, to length 1 say");
  std::vector<float> rotated(vector.begin(), vector.end());
  for (float& value : rotated) value /= length;
  rotation.Apply(rotated);
  return QuantiseRotated(rotated);
}

QuantisedVector QuantiseRotated(std::span<const float> rotated) {
  float most = 0;
  for (const float value : rotated) most = std::max(most, std::abs(value));
  QuantisedVector made;
  made.values.reserve(rotated.size());
  double kept = 0;
  for (const float value : rotated) {
    const auto whole = static_cast<int8_t>(std::lround(value / most * 127.0F));
    made.values.push_back(whole);
    kept += static_cast<double>(whole) * whole;
  }
  made.scale = static_cast<float>(1 / std::sqrt(kept));  // what is kept has length 1, too
  return made;
}

Status CheckName(std::string_view name) {
  if (name.empty() || name.size() > kMaxName)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a name of {} bytes: 1 to {} may be", name.size(), kMaxName));
  if (std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the name {} holds a control character", Quoted(name)));
  return {};
}

double Cosine(const int8_t* a, float a_scale, const int8_t* b, float b_scale, size_t dimension) {
  return Product(a, b, dimension) * static_cast<double>(a_scale) * static_cast<double>(b_scale);
}

int CodeLayout::BitsFor(size_t dimension) { return dimension >= 384 ? 1 : dimension >= 192 ? 2 : 4; }

float Encode(std::span<const float> residual, const CodeLayout& layout, uint8_t* code) {
  std::memset(code, 0, layout.columns());
  double squares = 0;
  for (const float value : residual) squares += static_cast<double>(value) * static_cast<double>(value);
  const int levels = 1 << layout.bits;
  const double deviation = std::sqrt(squares / static_cast<double>(residual.size()));
  const double step = layout.bits == 1 ? 1 : deviation * StepOf(layout.bits);
  double product = 0;
  for (size_t i = 0; i < residual.size(); ++i) {
    int level = residual[i] > 0 ? 1 : 0;
    if (layout.bits > 1) {
      const double place = step > 0 ? static_cast<double>(residual[i]) / step : 0;
      level = std::clamp(static_cast<int>(std::floor(place)) + levels / 2, 0, levels - 1);
    }
    for (int b = 0; b < layout.bits; ++b) {
      if ((level >> b & 1) != 0)
        code[static_cast<size_t>(b) * layout.plane_bytes() + i / 8] |= static_cast<uint8_t>(1U << i % 8);
    }
    product += static_cast<double>(residual[i]) * (2 * level - levels + 1);
  }
  return product > 0 ? static_cast<float>(squares / product) : 0.0F;
}

QueryTables MakeTables(std::span<const float> query, const CodeLayout& layout) {
  const size_t halves = layout.plane_bytes() * 2;
  std::vector<float> sums(halves * 16);
  double total = 0, widest = 0;
  std::vector<float> least(halves);
  for (size_t h = 0; h < halves; ++h) {
    float low = 0, high = 0;
    float* const table = sums.data() + h * 16;
    for (size_t k = 0; k < 4; ++k) {
      const size_t i = h * 4 + k;
      const float value = i < query.size() ? query[i] : 0.0F;
      total += static_cast<double>(value);
      (value < 0 ? low : high) += value;
      for (size_t m = 0; m < (size_t{1} << k); ++m) table[m + (size_t{1} << k)] = table[m] + value;
    }
    least[h] = low;
    widest = std::max(widest, static_cast<double>(high - low));
  }
  // <query, v> = 2 * sum over planes of 2^b * <query, bit b> - (2^bits - 1) * sum of the query.
  const int top = 1 << (layout.bits - 1);
  QueryTables tables;
  const double step = widest > 0 ? widest * top / 127 : 1;  // the highest plane fills the range of an entry
  double bias = 0;
  for (int b = 0; b < layout.bits; ++b) {
    const double weight = 1 << b;
    for (size_t h = 0; h < halves; ++h) {
      bias += weight * static_cast<double>(least[h]);
      for (size_t m = 0; m < 16; ++m) {
        tables.entries.push_back(static_cast<uint8_t>(
            std::lround(weight * static_cast<double>(sums[h * 16 + m] - least[h]) / step)));
      }
    }
  }
  tables.step = static_cast<float>(2 * step);
  tables.bias = static_cast<float>(2 * bias - ((1 << layout.bits) - 1) * total);
  return tables;
}

}  // namespace weir::identity
