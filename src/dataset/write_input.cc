#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "dataset/preparer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "dataset/write_input.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef WEIR_DATA_WRITE_INPUT
#define WEIR_DATA_WRITE_INPUT
namespace weir::dataset {

// The values of one channel's 256 levels. The formula is worked out in double and rounded once; where the sum
// (x * a_high + b_high) + (x * a_low + b_low) in float gives those very floats at every level, it stands for
// the table, for it needs no look-up: the first bracket is exact, the second puts right what a_high and
// b_high leave of a and b.
struct ChannelValues {
  std::array<float, 256> table;
  float a_high = 0, b_high = 0, a_low = 0, b_low = 0;
};

inline constexpr size_t kMaxFloatLanes = 16;
inline constexpr size_t kPixelsAtOnce = 1024;  // deinterleaved on the stack, in the first-level cache

}  // namespace weir::dataset
#endif

HWY_BEFORE_NAMESPACE();
namespace weir::dataset {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> LoadLevels(D df, const uint8_t* levels) {
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint8_t, D> du;
  return hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(du, levels)));
}

// The values of levels of one channel, whole vectors of them; returns how many of `n` that is.
size_t SumTerms(const ChannelValues& values, const uint8_t* HWY_RESTRICT levels, size_t n,
                float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const auto a_high = hn::Set(df, values.a_high);
  const auto b_high = hn::Set(df, values.b_high);
  const auto a_low = hn::Set(df, values.a_low);
  const auto b_low = hn::Set(df, values.b_low);
  const auto sum = [&](const uint8_t* p) HWY_ATTR {
    const auto x = LoadLevels(df, p);
    return hn::Add(hn::MulAdd(x, a_high, b_high), hn::MulAdd(x, a_low, b_low));
  };
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto sum0 = sum(levels + i);
    const auto sum1 = sum(levels + i + lanes);
    hn::StoreU(sum0, df, out + i);
    hn::StoreU(sum1, df, out + i + lanes);
  }
  return i;
}

// The same for levels that take three channels in turn: three vectors begin with the same channel again.
size_t SumTermsInTurn(const ChannelValues* values, const uint8_t* HWY_RESTRICT levels, size_t n,
                      float* HWY_RESTRICT out) {
  const hn::CappedTag<float, kMaxFloatLanes> df;
  const size_t lanes = hn::Lanes(df);
  alignas(64) float a_high[3 * kMaxFloatLanes], b_high[3 * kMaxFloatLanes];
  alignas(64) float a_low[3 * kMaxFloatLanes], b_low[3 * kMaxFloatLanes];
  for (size_t i = 0; i < 3 * lanes; ++i) {
    const ChannelValues& value = values[i % 3];
    a_high[i] = value.a_high;
    b_high[i] = value.b_high;
    a_low[i] = value.a_low;
    b_low[i] = value.b_low;
  }
  size_t i = 0;
  for (; i + 3 * lanes <= n; i += 3 * lanes) {
    for (size_t part = 0; part < 3 * lanes; part += lanes) {
      const auto x = LoadLevels(df, levels + i + part);
      const auto high = hn::MulAdd(x, hn::Load(df, a_high + part), hn::Load(df, b_high + part));
      const auto low = hn::MulAdd(x, hn::Load(df, a_low + part), hn::Load(df, b_low + part));
      hn::StoreU(hn::Add(high, low), df, out + i + part);
    }
  }
  return i;
}

// True where the sum of terms gives the table's floats, bit by bit.
bool EqualsTable(const ChannelValues& values) {
  uint8_t levels[256];
  float sums[256];
  for (int x = 0; x < 256; ++x) levels[x] = static_cast<uint8_t>(x);
  const size_t summed = SumTerms(values, levels, 256, sums);
  return summed == 256 && std::memcmp(sums, values.table.data(), sizeof(sums)) == 0;
}

// `n` levels that take `channels` (1 or 3) channels in turn.
void WriteFloats(const ChannelValues* values, size_t channels, const uint8_t* levels, size_t n, float* out) {
  const bool summed = std::all_of(values, values + channels, EqualsTable);
  size_t i = 0;
  if (summed)
    i = channels == 1 ? SumTerms(values[0], levels, n, out) : SumTermsInTurn(values, levels, n, out);
  for (; i < n; ++i) out[i] = values[i % channels].table[levels[i]];
}

// Three planes of interleaved pixels.
void Deinterleave(const uint8_t* HWY_RESTRICT pixels, size_t count, uint8_t* HWY_RESTRICT plane0,
                  uint8_t* HWY_RESTRICT plane1, uint8_t* HWY_RESTRICT plane2) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto v0 = hn::Undefined(d);
    auto v1 = hn::Undefined(d);
    auto v2 = hn::Undefined(d);
    hn::LoadInterleaved3(d, pixels + 3 * i, v0, v1, v2);
    hn::StoreU(v0, d, plane0 + i);
    hn::StoreU(v1, d, plane1 + i);
    hn::StoreU(v2, d, plane2 + i);
  }
  for (; i < count; ++i) {
    plane0[i] = pixels[3 * i];
    plane1[i] = pixels[3 * i + 1];
    plane2[i] = pixels[3 * i + 2];
  }
}

// Interleaved pixels of three channels to three planes of floats.
void WritePlanes(const ChannelValues* values, const uint8_t* pixels, size_t count, float* out) {
  const bool summed[3] = {EqualsTable(values[0]), EqualsTable(values[1]), EqualsTable(values[2])};
  uint8_t planes[3][kPixelsAtOnce];
  for (size_t begin = 0; begin < count; begin += kPixelsAtOnce) {
    const size_t n = std::min(kPixelsAtOnce, count - begin);
    Deinterleave(pixels + 3 * begin, n, planes[0], planes[1], planes[2]);
    for (int c = 0; c < 3; ++c) {
      float* plane = out + c * count + begin;
      size_t i = summed[c] ? SumTerms(values[c], planes[c], n, plane) : 0;
      for (; i < n; ++i) plane[i] = values[c].table[planes[c][i]];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::dataset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::dataset {
namespace {

HWY_EXPORT(WriteFloats);
HWY_EXPORT(WritePlanes);
HWY_EXPORT(Deinterleave);

ChannelValues MakeValues(double scale, double mean, double std) {
  ChannelValues values;
  for (int x = 0; x < 256; ++x) values.table[x] = static_cast<float>((x * scale - mean) / std);
  // On a grid of 2^-22 of the largest value every x * a_high + b_high is a float.
  const double a = scale / std, b = -mean / std;
  const double largest = std::max(std::abs(b), std::abs(255 * a + b));
  if (!std::isfinite(largest) || largest == 0) return values;
  const double grid = std::ldexp(1.0, std::ilogb(largest) - 22);
  values.a_high = static_cast<float>(std::nearbyint(a / grid) * grid);
  values.b_high = static_cast<float>(std::nearbyint(b / grid) * grid);
  values.a_low = static_cast<float>(a - values.a_high);
  values.b_low = static_cast<float>(b - values.b_high);
  return values;
}

}  // namespace

std::vector<float> LevelValues(const Recipe& recipe) {
  std::vector<float> values;
  for (int c = 0; c < recipe.geometry.channel_count(); ++c) {
    const auto table = MakeValues(recipe.scale, recipe.mean[c], recipe.std[c]).table;
    values.insert(values.end(), table.begin(), table.end());
  }
  return values;
}

void WriteInput(const Recipe& recipe, const PixelView& pixels, std::byte* out) {
  const size_t count = static_cast<size_t>(pixels.width) * pixels.height;
  const bool planar = pixels.channels == 3 && recipe.layout == Layout::kNchw;
  if (recipe.datatype == ElementType::kUint8) {
    auto* bytes = reinterpret_cast<uint8_t*>(out);
    if (planar) {
      HWY_DYNAMIC_DISPATCH(Deinterleave)(pixels.data, count, bytes, bytes + count, bytes + 2 * count);
    } else {
      std::copy_n(pixels.data, count * pixels.channels, bytes);
    }
    return;
  }
  ChannelValues values[3];
  for (int c = 0; c < pixels.channels; ++c)
    values[c] = MakeValues(recipe.scale, recipe.mean[c], recipe.std[c]);
  auto* floats = reinterpret_cast<float*>(out);
  if (planar) {
    HWY_DYNAMIC_DISPATCH(WritePlanes)(values, pixels.data, count, floats);
  } else {
    HWY_DYNAMIC_DISPATCH(WriteFloats)(values, pixels.channels, pixels.data, count * pixels.channels, floats);
  }
}

}  // namespace weir::dataset
#endif  // HWY_ONCE
