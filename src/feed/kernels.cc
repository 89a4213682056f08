#include "feed/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "feed/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef WEIR_FEED_KERNELS_COMMON
#define WEIR_FEED_KERNELS_COMMON
namespace weir::feed {
namespace {

uint8_t LumaOf(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

uint8_t Blend(int level, int value, float factor) {
  const float product = factor * static_cast<float>(value - level);
  return static_cast<uint8_t>(std::clamp(static_cast<float>(level) + product, 0.0f, 255.0f));
}

float Normalised(uint8_t value, float mean, float std) {
  return (static_cast<float>(value) / 255.0f - mean) / std;
}

}  // namespace
}  // namespace weir::feed
#endif

HWY_BEFORE_NAMESPACE();
namespace weir::feed {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Each function below does as many pixels or values as fill its vectors, and gives their number; the caller
// does the rest one by one.

#if HWY_TARGET == HWY_SCALAR

size_t ReverseSome(const uint8_t*, size_t, uint8_t*) { return 0; }
size_t SplitSome(const uint8_t*, size_t, uint8_t*, uint8_t*, uint8_t*) { return 0; }
size_t LumaSome(const uint8_t*, size_t, uint8_t*) { return 0; }
size_t BlendLevelSome(uint8_t*, size_t, int, float) { return 0; }
size_t BlendGreySome(uint8_t*, const uint8_t*, size_t, float) { return 0; }
size_t NormaliseSome(const uint8_t*, size_t, const Normalisation&, float*, float*, float*, size_t) {
  return 0;
}

#else

using D8 = hn::FixedTag<uint8_t, 16>;
using DF = hn::ScalableTag<float>;
using DI = hn::Rebind<int32_t, DF>;
using DU8 = hn::Rebind<uint8_t, DF>;

size_t ReverseSome(const uint8_t* from, size_t pixels, uint8_t* to) {
  alignas(16) constexpr uint8_t kLastFirst[16] = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const D8 d;
  const auto last_first = hn::Load(d, kLastFirst);
  const size_t lanes = hn::Lanes(d);
  size_t done = 0;
  for (; done + lanes <= pixels; done += lanes) {
    hn::Vec<D8> r, g, b;
    hn::LoadInterleaved3(d, from + 3 * (pixels - done - lanes), r, g, b);
    hn::StoreInterleaved3(hn::TableLookupBytes(r, last_first), hn::TableLookupBytes(g, last_first),
                          hn::TableLookupBytes(b, last_first), d, to + 3 * done);
  }
  return done;
}

size_t SplitSome(const uint8_t* rgb, size_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue) {
  const D8 d;
  const size_t lanes = hn::Lanes(d);
  size_t done = 0;
  for (; done + lanes <= pixels; done += lanes) {
    hn::Vec<D8> r, g, b;
    hn::LoadInterleaved3(d, rgb + 3 * done, r, g, b);
    hn::StoreU(r, d, red + done);
    hn::StoreU(g, d, green + done);
    hn::StoreU(b, d, blue + done);
  }
  return done;
}

size_t LumaSome(const uint8_t* rgb, size_t pixels, uint8_t* grey) {
  const hn::ScalableTag<uint32_t> d32;
  const hn::Rebind<uint8_t, decltype(d32)> d;
  const size_t lanes = hn::Lanes(d32);
  size_t done = 0;
  // The load of three interleaved vectors reads no further than their end.
  for (; done + lanes <= pixels; done += lanes) {
    hn::Vec<decltype(d)> r, g, b;
    hn::LoadInterleaved3(d, rgb + 3 * done, r, g, b);
    auto sum = hn::Mul(hn::PromoteTo(d32, r), hn::Set(d32, 19595u));
    sum = hn::Add(sum, hn::Mul(hn::PromoteTo(d32, g), hn::Set(d32, 38470u)));
    sum = hn::Add(sum, hn::Mul(hn::PromoteTo(d32, b), hn::Set(d32, 7471u)));
    sum = hn::ShiftRight<16>(hn::Add(sum, hn::Set(d32, 0x8000u)));
    const DI di;
    hn::StoreU(hn::DemoteTo(d, hn::BitCast(di, sum)), d, grey + done);
  }
  return done;
}

HWY_INLINE hn::Vec<DF> FloatOf(hn::Vec<DU8> values) {
  return hn::ConvertTo(DF(), hn::PromoteTo(DI(), values));
}

// Multiplies, then adds, each rounded: a fused step would differ from Pillow's.
HWY_INLINE hn::Vec<DU8> BlendOf(hn::Vec<DF> level, hn::Vec<DF> value, hn::Vec<DF> factor) {
  const DF df;
  const auto product = hn::Mul(factor, hn::Sub(value, level));
  const auto blended = hn::Min(hn::Max(hn::Add(level, product), hn::Zero(df)), hn::Set(df, 255.0f));
  return hn::DemoteTo(DU8(), hn::ConvertTo(DI(), blended));
}

size_t BlendLevelSome(uint8_t* values, size_t count, int level, float factor) {
  const DF df;
  const DU8 d;
  const size_t lanes = hn::Lanes(df);
  const auto from = hn::Set(df, static_cast<float>(level)), by = hn::Set(df, factor);
  size_t done = 0;
  for (; done + lanes <= count; done += lanes)
    hn::StoreU(BlendOf(from, FloatOf(hn::LoadU(d, values + done)), by), d, values + done);
  return done;
}

size_t BlendGreySome(uint8_t* rgb, const uint8_t* grey, size_t pixels, float factor) {
  const DF df;
  const DU8 d;
  const size_t lanes = hn::Lanes(df);
  const auto by = hn::Set(df, factor);
  size_t done = 0;
  for (; done + lanes <= pixels; done += lanes) {
    hn::Vec<DU8> r, g, b;
    hn::LoadInterleaved3(d, rgb + 3 * done, r, g, b);
    const auto level = FloatOf(hn::LoadU(d, grey + done));
    hn::StoreInterleaved3(BlendOf(level, FloatOf(r), by), BlendOf(level, FloatOf(g), by),
                          BlendOf(level, FloatOf(b), by), d, rgb + 3 * done);
  }
  return done;
}

size_t NormaliseSome(const uint8_t* rgb, size_t pixels, const Normalisation& by, float* red, float* green,
                     float* blue, size_t step) {
  const DF df;
  const DU8 d;
  const size_t lanes = hn::Lanes(df);
  const auto full = hn::Set(df, 255.0f);
  const auto of = [&](hn::Vec<DU8> values, size_t c) {
    const auto share = hn::Div(FloatOf(values), full);
    return hn::Div(hn::Sub(share, hn::Set(df, by.mean[c])), hn::Set(df, by.std[c]));
  };
  size_t done = 0;
  for (; done + lanes <= pixels; done += lanes) {
    hn::Vec<DU8> r, g, b;
    hn::LoadInterleaved3(d, rgb + 3 * done, r, g, b);
    if (step == 3) {
      hn::StoreInterleaved3(of(r, 0), of(g, 1), of(b, 2), df, red + 3 * done);
    } else {
      hn::StoreU(of(r, 0), df, red + done);
      hn::StoreU(of(g, 1), df, green + done);
      hn::StoreU(of(b, 2), df, blue + done);
    }
  }
  return done;
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace weir::feed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::feed {

HWY_EXPORT(ReverseSome);
HWY_EXPORT(SplitSome);
HWY_EXPORT(LumaSome);
HWY_EXPORT(BlendLevelSome);
HWY_EXPORT(BlendGreySome);
HWY_EXPORT(NormaliseSome);

void ReverseRgb(const uint8_t* from, size_t pixels, uint8_t* to) {
  for (size_t i = HWY_DYNAMIC_DISPATCH(ReverseSome)(from, pixels, to); i < pixels; ++i)
    std::memcpy(to + 3 * i, from + 3 * (pixels - 1 - i), 3);
}

void GreyToRgb(const uint8_t* from, size_t pixels, uint8_t* to) {
  for (size_t i = 0; i < pixels; ++i, to += 3) to[0] = to[1] = to[2] = from[i];
}

void Luma(const uint8_t* rgb, size_t pixels, uint8_t* grey) {
  for (size_t i = HWY_DYNAMIC_DISPATCH(LumaSome)(rgb, pixels, grey); i < pixels; ++i)
    grey[i] = LumaOf(rgb + 3 * i);
}

void BlendLevel(uint8_t* values, size_t count, int level, float factor) {
  for (size_t i = HWY_DYNAMIC_DISPATCH(BlendLevelSome)(values, count, level, factor); i < count; ++i)
    values[i] = Blend(level, values[i], factor);
}

void BlendGrey(uint8_t* rgb, const uint8_t* grey, size_t pixels, float factor) {
  for (size_t i = HWY_DYNAMIC_DISPATCH(BlendGreySome)(rgb, grey, pixels, factor); i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = Blend(grey[i], rgb[3 * i + c], factor);
  }
}

void ToPlanes(const uint8_t* rgb, size_t pixels, std::array<uint8_t*, 3> planes) {
  for (size_t i = HWY_DYNAMIC_DISPATCH(SplitSome)(rgb, pixels, planes[0], planes[1], planes[2]); i < pixels;
       ++i) {
    for (size_t c = 0; c < 3; ++c) planes[c][i] = rgb[3 * i + c];
  }
}

void ToFloat32(const uint8_t* rgb, size_t pixels, const Normalisation& by, std::array<float*, 3> planes,
               size_t step) {
  size_t i = HWY_DYNAMIC_DISPATCH(NormaliseSome)(rgb, pixels, by, planes[0], planes[1], planes[2], step);
  for (; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) planes[c][i * step] = Normalised(rgb[3 * i + c], by.mean[c], by.std[c]);
  }
}

void ToFloat16(const uint8_t* rgb, size_t pixels, const Normalisation& by, std::array<uint16_t*, 3> planes,
               size_t step) {
  // There are 256 values a channel, so a table is as exact as the division, and quicker.
  std::array<std::array<uint16_t, 256>, 3> table;
  for (size_t c = 0; c < 3; ++c) {
    for (size_t value = 0; value < 256; ++value) {
      const float normalised = Normalised(static_cast<uint8_t>(value), by.mean[c], by.std[c]);
      table[c][value] = std::bit_cast<uint16_t>(static_cast<_Float16>(normalised));
    }
  }
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) planes[c][i * step] = table[c][rgb[3 * i + c]];
  }
}

namespace {

// rgb2hsv_row and hsv2rgb of Pillow 9.4 src/libImaging/Convert.c, with their mix of precisions.
void HsvOf(const uint8_t* rgb, uint8_t* hsv) {
  const uint8_t r = rgb[0], g = rgb[1], b = rgb[2];
  const uint8_t high = std::max({r, g, b}), low = std::min({r, g, b});
  hsv[2] = high;
  hsv[0] = hsv[1] = 0;
  if (high == low) return;
  const auto range = static_cast<float>(high - low);
  const float s = range / static_cast<float>(high);
  const float rc = static_cast<float>(high - r) / range, gc = static_cast<float>(high - g) / range,
              bc = static_cast<float>(high - b) / range;
  float h = 0;
  if (r == high) {
    h = bc - gc;
  } else if (g == high) {
    h = static_cast<float>(2.0 + rc - bc);
  } else {
    h = static_cast<float>(4.0 + gc - rc);
  }
  h = static_cast<float>(std::fmod(h / 6.0 + 1.0, 1.0));
  hsv[0] = static_cast<uint8_t>(std::clamp(static_cast<int>(h * 255.0), 0, 255));
  hsv[1] = static_cast<uint8_t>(std::clamp(static_cast<int>(s * 255.0), 0, 255));
}

void RgbOf(const uint8_t* hsv, uint8_t* rgb) {
  const uint8_t h = hsv[0], s = hsv[1], v = hsv[2];
  if (s == 0) {
    rgb[0] = rgb[1] = rgb[2] = v;
    return;
  }
  const int i = static_cast<int>(std::floor(static_cast<float>(h) * 6.0 / 255.0));
  const auto f = static_cast<float>(static_cast<float>(h) * 6.0 / 255.0 - static_cast<float>(i));
  const auto fs = static_cast<float>(static_cast<float>(s) / 255.0);
  const auto level = [&](double share) {
    return static_cast<uint8_t>(
        std::clamp(static_cast<int>(std::round(static_cast<float>(v) * share)), 0, 255));
  };
  const uint8_t p = level(1.0 - fs), q = level(1.0 - fs * f), t = level(1.0 - fs * (1.0 - f));
  const uint8_t table[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::memcpy(rgb, table[i % 6], 3);
}

}  // namespace

void ShiftHue(uint8_t* rgb, size_t pixels, uint8_t shift) {
  for (size_t i = 0; i < pixels; ++i, rgb += 3) {
    uint8_t hsv[3];
    HsvOf(rgb, hsv);
    hsv[0] = static_cast<uint8_t>(hsv[0] + shift);
    RgbOf(hsv, rgb);
  }
}

}  // namespace weir::feed
#endif  // HWY_ONCE
