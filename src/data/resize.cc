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
  const auto sum_block = [&](size_t i) HWY_ATTR {
    auto sum0 = hn::Zero(df);
    auto sum1 = sum0, sum2 = sum0, sum3 = sum0;
    const uint8_t* p = rows + i;
    for (int32_t k = 0; k < count;) {
      auto part0 = hn::Zero(df);
      auto part1 = part0, part2 = part0, part3 = part0;
      for (const int32_t end = std::min(count, k + kStretch); k < end; ++k, p += step) {
        const auto weight = hn::Set(df, weights[k]);
        part0 = hn::MulAdd(load(p), weight, part0);
        part1 = hn::MulAdd(load(p + lanes), weight, part1);
        part2 = hn::MulAdd(load(p + 2 * lanes), weight, part2);
        part3 = hn::MulAdd(load(p + 3 * lanes), weight, part3);
      }
      sum0 = hn::Add(sum0, part0);
      sum1 = hn::Add(sum1, part1);
      sum2 = hn::Add(sum2, part2);
      sum3 = hn::Add(sum3, part3);
    }
    hn::StoreU(sum0, df, out + i);
    hn::StoreU(sum1, df, out + i + lanes);
    hn::StoreU(sum2, df, out + i + 2 * lanes);
    hn::StoreU(sum3, df, out + i + 3 * lanes);
  };
  const size_t block = 4 * lanes;
  if (n >= block) {
    for (size_t i = 0; i + block < n; i += block) sum_block(i);
    sum_block(n - block);
    return;
  }
  for (size_t i = 0; i < n; ++i) {
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

// Output pixels [first, last) of three channels, all of whose taps lie in `row`, which begins with source
// pixel `tile`. kTaps is x.stride, or 0 for one that no other case is for. Reads up to kTaps pixels and a
// float past the last (weighted with 0), and writes a float past each (which the next one overwrites).
template <int kTaps>
void SumPixels3(const Axis& x, int64_t first, int64_t last, int64_t tile, const float* HWY_RESTRICT row,
                float* HWY_RESTRICT sum) {
  const hn::CappedTag<float, 4> d;
  const float* weights = &x.weights[first * x.stride];
  for (int64_t i = first; i < last; ++i, weights += x.stride) {
    const float* pixels = row + 3 * (x.begins[i] - tile);
    const int taps = kTaps == 0 ? x.counts[i] : kTaps;
    if (hn::Lanes(d) == 4) {
      auto total = hn::Zero(d);
      for (int k = 0; k < taps; ++k) {
        total = hn::MulAdd(hn::LoadU(d, pixels + 3 * k), hn::Set(d, weights[k]), total);
      }
      hn::StoreU(total, d, sum + 3 * i);
    } else {  // no vectors on this machine
      for (int c = 0; c < 3; ++c) {
        float total = 0;
        for (int k = 0; k < taps; ++k) total += weights[k] * pixels[3 * k + c];
        sum[3 * i + c] = total;
      }
    }
  }
}

// The loop over a few taps is unrolled: how many they are would be guessed wrong at every other pixel.
void SumPixels3(const Axis& x, int64_t first, int64_t last, int64_t tile, const float* row, float* sum) {
  switch (x.stride) {
    case 2:
      return SumPixels3<2>(x, first, last, tile, row, sum);
    case 3:
      return SumPixels3<3>(x, first, last, tile, row, sum);
    case 4:
      return SumPixels3<4>(x, first, last, tile, row, sum);
    case 5:
      return SumPixels3<5>(x, first, last, tile, row, sum);
    case 6:
      return SumPixels3<6>(x, first, last, tile, row, sum);
    default:
      return SumPixels3<0>(x, first, last, tile, row, sum);
  }
}

// What columns [tile, tile_end) give to output pixel i: sets it where it begins in them, else adds.
void AddPixel(const Axis& x, int channels, int64_t tile, int64_t tile_end, int64_t i, const float* row,
              float* sum) {
  const int64_t begin = std::max(x.begins[i], tile);
  const int64_t end = std::min(x.begins[i] + x.counts[i], tile_end);
  const float* weights = &x.weights[i * x.stride + (begin - x.begins[i])];
  for (int c = 0; c < channels; ++c) {
    const float* pixels = row + (begin - tile) * channels + c;
    float part = 0;
    for (int64_t k = 0; k < end - begin; ++k) part += weights[k] * pixels[k * channels];
    float& out = sum[i * channels + c];
    out = begin == x.begins[i] ? part : out + part;
  }
}

// What columns [tile, tile_end) give to the output pixels from `first` on; `row` holds those columns' sums.
// Returns the first pixel that a later tile still adds to.
int64_t AddTile(const Axis& x, int channels, int64_t tile, int64_t tile_end, int64_t first, const float* row,
                float* sum) {
  int64_t complete = tile_end == x.source_end() ? x.size() : first;
  while (complete < x.size() && x.begins[complete] + x.counts[complete] <= tile_end) ++complete;
  int64_t i = first;
  for (; i < x.size() && x.begins[i] < tile; ++i) AddPixel(x, channels, tile, tile_end, i, row, sum);
  if (channels == 3 && i < complete) {
    SumPixels3(x, i, complete, tile, row, sum);
    i = complete;
  }
  for (; i < x.size() && x.begins[i] < tile_end; ++i) AddPixel(x, channels, tile, tile_end, i, row, sum);
  return complete;
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
  axis.begins.resize(count);
  axis.counts.resize(count);
  const auto centre = [&](int64_t i) { return (static_cast<double>(first + i) + 0.5) * scale; };
  for (int64_t i = 0; i < count; ++i) {
    axis.begins[i] = std::max<int64_t>(static_cast<int64_t>(centre(i) - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre(i) + support + 0.5), source);
    axis.counts[i] = static_cast<int32_t>(end - axis.begins[i]);
    axis.stride = std::max(axis.stride, axis.counts[i]);
  }
  axis.weights.resize(count * axis.stride);
  std::vector<double> shares(axis.stride);
  for (int64_t i = 0; i < count; ++i) {
    double total = 0;
    for (int32_t k = 0; k < axis.counts[i]; ++k) {
      const double distance = std::abs((static_cast<double>(k + axis.begins[i]) - centre(i) + 0.5) * inverse);
      shares[k] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += shares[k];
    }
    constexpr double kUnits = 1 << 22;
    for (int32_t k = 0; k < axis.counts[i]; ++k) {
      const double share = total != 0.0 ? shares[k] / total : shares[k];
      axis.weights[i * axis.stride + k] = static_cast<float>(std::floor(0.5 + share * kUnits) / kUnits);
    }
  }
  return axis;
}

Axis Mirror(const Axis& axis, int64_t source) {
  Axis mirrored = axis;
  std::ranges::fill(mirrored.weights, 0.0f);
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
  const int64_t tile = std::min(kTilePixels, x.source_end() - x.source_begin());
  row_.resize(static_cast<size_t>((tile + x.stride) * window.channels) + 1);  // as far as SumPixels3 reads
  sum_.resize(static_cast<size_t>(x.size() * window.channels) + 1);           // and writes
  out.width = static_cast<int>(x.size());
  out.height = static_cast<int>(y.size());
  out.channels = window.channels;
  out.data.resize(static_cast<size_t>(x.size()) * y.size() * window.channels);
  HWY_DYNAMIC_DISPATCH(ResizeRows)(window, x, y, row_.data(), sum_.data(), out.data.data());
}

}  // namespace weir::data
#endif  // HWY_ONCE
