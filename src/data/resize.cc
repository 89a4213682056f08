#include "data/resize.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/resize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Source pixels of a row whose column sums are taken at a time: 24 KB of float RGB stay in the first-level
// cache.
#ifndef WEIR_DATA_RESIZE_TILE
#define WEIR_DATA_RESIZE_TILE
namespace weir::data {
inline constexpr int64_t kTilePixels = 2048;
}  // namespace weir::data
#endif

HWY_BEFORE_NAMESPACE();
namespace weir::data {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows summed at a time: with it and the tile, float rounding stays below 0.05 of a level at any reduction.
constexpr int32_t kStretch = 1024;

// out[i] = the sum over k < count of weights[k] * rows[k * step + i], for i < n.
void SumRows(const uint8_t* HWY_RESTRICT rows, size_t step, const float* HWY_RESTRICT weights, int32_t count,
             size_t n, float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<int32_t, decltype(df)> di;
  const hn::Rebind<uint8_t, decltype(df)> du;
  const size_t lanes = hn::Lanes(df);
  const auto load = [&](const uint8_t* p)
                        HWY_ATTR { return hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(du, p))); };
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    auto sum0 = hn::Zero(df);
    auto sum1 = hn::Zero(df);
    const uint8_t* p = rows + i;
    for (int32_t k = 0; k < count;) {
      auto part0 = hn::Zero(df);
      auto part1 = hn::Zero(df);
      for (const int32_t end = std::min(count, k + kStretch); k < end; ++k, p += step) {
        const auto weight = hn::Set(df, weights[k]);
        part0 = hn::MulAdd(load(p), weight, part0);
        part1 = hn::MulAdd(load(p + lanes), weight, part1);
      }
      sum0 = hn::Add(sum0, part0);
      sum1 = hn::Add(sum1, part1);
    }
    hn::StoreU(sum0, df, out + i);
    hn::StoreU(sum1, df, out + i + lanes);
  }
  for (; i < n; ++i) {
    float sum = 0;
    for (int32_t k = 0; k < count;) {
      float part = 0;
      for (const int32_t end = std::min(count, k + kStretch); k < end; ++k) {
        part += weights[k] * rows[static_cast<size_t>(k) * step + i];
      }
      sum += part;
    }
    out[i] = sum;
  }
}

// out[c] = the sum over k < count of weights[k] * pixels[3 * k + c]. May read and write one float past each
// pixel.
HWY_INLINE void SumPixels3(const float* pixels, const float* weights, int64_t count, float* out) {
  const hn::CappedTag<float, 4> d;
  if (hn::Lanes(d) == 4) {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < count; ++k) {
      sum = hn::MulAdd(hn::LoadU(d, pixels + 3 * k), hn::Set(d, weights[k]), sum);
    }
    hn::StoreU(sum, d, out);
    return;
  }
  for (int c = 0; c < 3; ++c) {  // no vectors on this machine
    out[c] = 0;
    for (int64_t k = 0; k < count; ++k) out[c] += weights[k] * pixels[3 * k + c];
  }
}

// What the columns [tile, tile_end) add to the output pixels from `first` on; `row` holds those columns'
// sums. A pixel that begins in this tile is set (its fourth float falls on the next pixel, which is set
// later), one that began before is added to. Returns the first output pixel that a later tile still adds to.
int64_t AddTile(const Axis& x, int channels, int64_t tile, int64_t tile_end, int64_t first, const float* row,
                float* sum) {
  int64_t unfinished = first;
  for (int64_t i = first; i < x.size() && x.begins[i] < tile_end; ++i) {
    const int64_t begin = std::max(x.begins[i], tile);
    const int64_t end = std::min(x.begins[i] + x.counts[i], tile_end);
    const float* weights = &x.weights[i * x.stride + (begin - x.begins[i])];
    const float* pixels = row + (begin - tile) * channels;
    float* out = sum + i * channels;
    if (begin == x.begins[i] && channels == 3) {
      SumPixels3(pixels, weights, end - begin, out);
    } else {
      for (int c = 0; c < channels; ++c) {
        float part = 0;
        for (int64_t k = 0; k < end - begin; ++k) part += weights[k] * pixels[k * channels + c];
        out[c] = begin == x.begins[i] ? part : out[c] + part;
      }
    }
    if (x.begins[i] + x.counts[i] <= tile_end) unfinished = i + 1;
  }
  return unfinished;
}

// Sums to levels: rounded, and held within 0 to 255.
void RoundRow(const float* HWY_RESTRICT sums, size_t n, uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<uint8_t, decltype(df)> du;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(du, hn::NearestInt(hn::LoadU(df, sums + i))), du, out + i);
  }
  for (; i < n; ++i) out[i] = static_cast<uint8_t>(std::lrint(std::clamp(sums[i], 0.0f, 255.0f)));
}

// Columns before rows: the columns' sums run over contiguous memory, and there are fewer of them to sum along
// the row.
void ResizeRows(const Pixels& window, const Axis& x, const Axis& y, float* row, float* sum, uint8_t* out) {
  const int channels = window.channels;
  const size_t step = static_cast<size_t>(window.width) * channels;
  const size_t out_step = static_cast<size_t>(x.size()) * channels;
  for (int64_t j = 0; j < y.size(); ++j, out += out_step) {
    const uint8_t* rows = window.data.data() + static_cast<size_t>(y.begins[j] - y.source_begin()) * step;
    int64_t first = 0;
    for (int64_t tile = x.source_begin(); tile < x.source_end(); tile += kTilePixels) {
      const int64_t tile_end = std::min(tile + kTilePixels, x.source_end());
      SumRows(rows + (tile - x.source_begin()) * channels, step, &y.weights[j * y.stride], y.counts[j],
              static_cast<size_t>(tile_end - tile) * channels, row);
      first = AddTile(x, channels, tile, tile_end, first, row, sum);
    }
    RoundRow(sum, out_step, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::data
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::data {

HWY_EXPORT(ResizeRows);

Axis MakeAxis(int64_t source, int64_t target, int64_t first, int64_t count) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double filter_scale = std::max(scale, 1.0);
  const double support =
      filter_scale;  // the triangle reaches 1 source pixel, or 1 target pixel when reducing
  const double inverse = 1.0 / filter_scale;
  Axis axis;
  axis.stride = static_cast<int32_t>(std::ceil(support)) * 2 + 1;
  axis.begins.resize(count);
  axis.counts.resize(count);
  axis.weights.resize(count * axis.stride);
  std::vector<double> shares(axis.stride);
  for (int64_t i = 0; i < count; ++i) {
    const double centre = (static_cast<double>(first + i) + 0.5) * scale;
    const int64_t begin = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), source);
    double total = 0;
    for (int64_t k = 0; k < end - begin; ++k) {
      const double distance = std::abs((static_cast<double>(k + begin) - centre + 0.5) * inverse);
      shares[k] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += shares[k];
    }
    constexpr double kUnits = 1 << 22;
    for (int64_t k = 0; k < end - begin; ++k) {
      const double share = total != 0.0 ? shares[k] / total : shares[k];
      axis.weights[i * axis.stride + k] = static_cast<float>(std::floor(0.5 + share * kUnits) / kUnits);
    }
    axis.begins[i] = begin;
    axis.counts[i] = static_cast<int32_t>(end - begin);
  }
  return axis;
}

Axis Mirror(const Axis& axis, int64_t source) {
  Axis mirrored = axis;
  const int64_t size = axis.size();
  for (int64_t i = 0; i < size; ++i) {
    const int64_t from = size - 1 - i;
    mirrored.begins[i] = source - axis.begins[from] - axis.counts[from];
    mirrored.counts[i] = axis.counts[from];
    std::reverse_copy(&axis.weights[from * axis.stride],
                      &axis.weights[from * axis.stride] + axis.counts[from],
                      &mirrored.weights[i * axis.stride]);
  }
  return mirrored;
}

void Resizer::Resize(const Pixels& window, const Axis& x, const Axis& y, Pixels& out) {
  constexpr size_t kPastTheEnd = 4;  // floats that SumPixels3 touches past a pixel
  const int64_t tile = std::min(kTilePixels, x.source_end() - x.source_begin());
  row_.resize(static_cast<size_t>(tile * window.channels) + kPastTheEnd);
  sum_.resize(static_cast<size_t>(x.size() * window.channels) + kPastTheEnd);
  out.width = static_cast<int>(x.size());
  out.height = static_cast<int>(y.size());
  out.channels = window.channels;
  out.data.resize(static_cast<size_t>(x.size()) * y.size() * window.channels);
  HWY_DYNAMIC_DISPATCH(ResizeRows)(window, x, y, row_.data(), sum_.data(), out.data.data());
}

}  // namespace weir::data
#endif  // HWY_ONCE
