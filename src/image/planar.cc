#include "image/planar.h"

#include <algorithm>
#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/planar.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Rows are summed first: that leaves fewer values for the sums along a row, which are the slower ones. Levels
// between the passes have 16 bits, 7 of them behind the point; weights have 15 bits.
#ifndef WEIR_IMAGE_PLANAR_COMMON
#define WEIR_IMAGE_PLANAR_COMMON
namespace weir::image {
namespace {

constexpr int kPoint = 7;          // bits of a level behind the point
constexpr int kWeightBits15 = 15;  // of a weight
constexpr int kTapsOfBlock = 8, kColumnsOfGroup = 8;
constexpr size_t kMostLanes = 64;  // values that a vector may write past the end of a row

// Factors of 15 bits; the products have kColourPoint bits behind the point.
struct Factors {
  int16_t luma, red_cr, green_cb, green_cr, blue_cb;
  int16_t black;
};
constexpr int kColourPoint = 5;

}  // namespace
}  // namespace weir::image
#endif

HWY_BEFORE_NAMESPACE();
namespace weir::image {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

int16_t Product15(int a, int b) { return static_cast<int16_t>((a * b + (1 << 14)) >> kWeightBits15); }

void SumRows(const uint8_t* const* rows, const int16_t* weights, int count, size_t n, int16_t* out) {
  for (size_t i = 0; i < n; ++i) {
    int sum = 0;
    for (int k = 0; k < count; ++k) sum += Product15(rows[k][i] << kPoint, weights[k]);
    out[i] = static_cast<int16_t>(std::min(sum, 32767));
  }
}

void SumColumns(const int16_t* row, const int32_t* begins, const int16_t* weights, int blocks, size_t n,
                int16_t* out) {
  for (size_t i = 0; i < n; ++i) {
    const size_t group = i / kColumnsOfGroup, at = i % kColumnsOfGroup;
    int64_t sum = 1 << (kWeightBits15 - 1);
    for (int block = 0; block < blocks; ++block) {
      const int16_t* w =
          weights + ((group * static_cast<size_t>(blocks) + static_cast<size_t>(block)) * kColumnsOfGroup +
                     at % 4 * 2 + at / 4) *
                        kTapsOfBlock;
      for (int k = 0; k < kTapsOfBlock; ++k) sum += int64_t{w[k]} * row[begins[i] + block * kTapsOfBlock + k];
    }
    out[i] = static_cast<int16_t>(std::min<int64_t>(sum >> kWeightBits15, 32767));
  }
}

void ToRgb(const int16_t* y, const int16_t* cb, const int16_t* cr, const Factors& f, size_t n, uint8_t* out) {
  const auto level = [](int value) {
    return static_cast<uint8_t>(std::clamp((value + (1 << (kColourPoint - 1))) >> kColourPoint, 0, 255));
  };
  for (size_t i = 0; i < n; ++i) {
    const int luma = Product15(y[i] - f.black, f.luma), u = cb[i] - (128 << kPoint),
              v = cr[i] - (128 << kPoint);
    out[3 * i] = level(luma + Product15(v, f.red_cr));
    out[3 * i + 1] = level(luma - Product15(u, f.green_cb) - Product15(v, f.green_cr));
    out[3 * i + 2] = level(luma + Product15(u, f.blue_cb));
  }
}

#else

// n values from `count` rows. The last vector lies over the one before it, so that no row is read past its
// end.
void SumRows(const uint8_t* const* rows, const int16_t* weights, int count, size_t n, int16_t* out) {
  const auto sum = [&](auto d, size_t at) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(d)> d8;
    auto total = hn::Zero(d);
    for (int k = 0; k < count; ++k) {
      const auto levels = hn::ShiftLeft<kPoint>(hn::PromoteTo(d, hn::LoadU(d8, rows[k] + at)));
      total = hn::SaturatedAdd(total, hn::MulFixedPoint15(levels, hn::Set(d, weights[k])));
    }
    hn::StoreU(total, d, out + at);
  };
  const hn::ScalableTag<int16_t> wide;
  const size_t lanes = hn::Lanes(wide);
  size_t at = 0;
  for (; at + lanes <= n; at += lanes) sum(wide, at);
  if (at == n) return;
  if (n >= lanes) return sum(wide, n - lanes);
  for (; at < n; ++at) sum(hn::FixedTag<int16_t, 1>(), at);
}

#if HWY_CAP_GE256
constexpr size_t kHalves = 2;
#else
constexpr size_t kHalves = 1;
#endif
using DTaps = hn::FixedTag<int16_t, kHalves * kTapsOfBlock>;
using DSums = hn::FixedTag<int32_t, kHalves * 4>;

// The taps of column i and, in a vector's other half, of column i + 4.
HWY_INLINE hn::Vec<DTaps> TapsOf(const int16_t* row, const int32_t* begins, size_t i, size_t half) {
  const hn::FixedTag<int16_t, kTapsOfBlock> d;
#if HWY_CAP_GE256
  (void)half;
  return hn::Combine(DTaps(), hn::LoadU(d, row + begins[i + 4]), hn::LoadU(d, row + begins[i]));
#else
  return hn::LoadU(d, row + begins[i + 4 * half]);
#endif
}

// Sums of the quarters of a vector's halves: lane j of a half is the sum of the half of the j-th vector.
HWY_INLINE hn::Vec<DSums> SumsOf4(hn::Vec<DSums> a, hn::Vec<DSums> b, hn::Vec<DSums> c, hn::Vec<DSums> e) {
  const DSums d;
  const auto ac = hn::Add(hn::InterleaveLower(d, a, c), hn::InterleaveUpper(d, a, c));
  const auto be = hn::Add(hn::InterleaveLower(d, b, e), hn::InterleaveUpper(d, b, e));
  // ac: a c a c of each half; be: b e b e.
  const auto low = hn::InterleaveLower(d, ac, be), high = hn::InterleaveUpper(d, ac, be);
  return hn::Add(low, high);  // a b c e
}

// Groups of 8 columns; n and the arrays are rounded up to whole groups.
template <int kBlocks>
void SumGroups(const int16_t* row, const int32_t* begins, const int16_t* weights, int given_blocks, size_t n,
               int16_t* out) {
  const int blocks = kBlocks == 0 ? given_blocks : kBlocks;
  const DSums d;
  const hn::Rebind<int16_t, DSums> d16;
  for (size_t i = 0; i < n; i += kColumnsOfGroup, begins += kColumnsOfGroup) {
    for (size_t half = 0; half < 2 / kHalves; ++half) {
      hn::Vec<DSums> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
      for (int block = 0; block < blocks; ++block) {
        for (size_t j = 0; j < 4; ++j) {
          const size_t at = (static_cast<size_t>(block) * kColumnsOfGroup + 2 * j + half) * kTapsOfBlock;
          auto rest = hn::Zero(d);
          const auto taps = TapsOf(row + block * kTapsOfBlock, begins, j, half);
          sums[j] = hn::ReorderWidenMulAccumulate(d, taps, hn::LoadU(DTaps(), weights + at), sums[j], rest);
          sums[j] = hn::Add(sums[j], rest);
        }
      }
      auto total = SumsOf4(sums[0], sums[1], sums[2], sums[3]);
      total = hn::ShiftRight<kWeightBits15>(hn::Add(total, hn::Set(d, 1 << (kWeightBits15 - 1))));
      hn::StoreU(hn::DemoteTo(d16, total), d16, out + i + 4 * half);
    }
    weights += static_cast<size_t>(blocks) * kColumnsOfGroup * kTapsOfBlock;
  }
}

void SumColumns(const int16_t* row, const int32_t* begins, const int16_t* weights, int blocks, size_t n,
                int16_t* out) {
  if (blocks == 1) return SumGroups<1>(row, begins, weights, blocks, n, out);
  SumGroups<0>(row, begins, weights, blocks, n, out);
}

// Reads and writes whole vectors: up to kMostLanes pixels past the n-th.
void ToRgb(const int16_t* y, const int16_t* cb, const int16_t* cr, const Factors& f, size_t n, uint8_t* out) {
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto black = hn::Set(d, f.black), grey = hn::Set(d, int16_t{128 << kPoint}),
             half = hn::Set(d, int16_t{1 << (kColourPoint - 1)});
  const auto luma = hn::Set(d, f.luma), red_cr = hn::Set(d, f.red_cr), green_cb = hn::Set(d, f.green_cb),
             green_cr = hn::Set(d, f.green_cr), blue_cb = hn::Set(d, f.blue_cb);
  const auto level = [&](auto value) HWY_ATTR {
    return hn::DemoteTo(d8, hn::ShiftRight<kColourPoint>(hn::Add(value, half)));
  };
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto l = hn::MulFixedPoint15(hn::Sub(hn::LoadU(d, y + i), black), luma);
    const auto u = hn::Sub(hn::LoadU(d, cb + i), grey), v = hn::Sub(hn::LoadU(d, cr + i), grey);
    const auto red = hn::Add(l, hn::MulFixedPoint15(v, red_cr)),
               blue = hn::Add(l, hn::MulFixedPoint15(u, blue_cb)),
               green =
                   hn::Sub(hn::Sub(l, hn::MulFixedPoint15(u, green_cb)), hn::MulFixedPoint15(v, green_cr));
    hn::StoreInterleaved3(level(red), level(green), level(blue), d8, out + 3 * i);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace weir::image
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::image {

HWY_EXPORT(SumRows);
HWY_EXPORT(SumColumns);
HWY_EXPORT(ToRgb);

namespace {

constexpr int32_t kOne = 1 << kWeightBits15;

// The weights of one output pixel in 15 bits; their sum stays 1, but for a single one.
void Shorten(const Axis& axis, int64_t i, std::vector<int16_t>& weights) {
  const int32_t* const given = &axis.weights[static_cast<size_t>(i * axis.stride)];
  weights.assign(static_cast<size_t>(axis.stride), 0);
  constexpr int kDropped = 22 - kWeightBits15;
  int32_t sum = 0;
  size_t largest = 0;
  for (size_t k = 0; k < static_cast<size_t>(axis.counts[static_cast<size_t>(i)]); ++k) {
    weights[k] = static_cast<int16_t>(std::min((given[k] + (1 << (kDropped - 1))) >> kDropped, kOne - 1));
    sum += weights[k];
    if (weights[k] > weights[largest]) largest = k;
  }
  weights[largest] = static_cast<int16_t>(std::min(weights[largest] + kOne - sum, kOne - 1));
}

Factors FactorsOf(const YuvColours& colours) {
  const double luma = colours.full_range ? 1 : 255.0 / 219, chroma = colours.full_range ? 1 : 255.0 / 224;
  const double red = 2 * (1 - colours.red) * chroma, blue = 2 * (1 - colours.blue) * chroma;
  const double green = 1 - colours.red - colours.blue;
  const auto factor = [](double value) {
    return static_cast<int16_t>(std::lround(value * kOne / (1 << (kPoint - kColourPoint))));
  };
  return {.luma = factor(luma),
          .red_cr = factor(red),
          .green_cb = factor(blue * colours.blue / green),
          .green_cr = factor(red * colours.red / green),
          .blue_cb = factor(blue),
          .black = static_cast<int16_t>(colours.full_range ? 0 : 16 << kPoint)};
}

}  // namespace

PlanarResizer::Columns PlanarResizer::MakeColumns(const Axis& axis) {
  Columns columns{.begins = {},
                  .weights = {},
                  .blocks = (axis.stride + kTapsOfBlock - 1) / kTapsOfBlock,
                  .first = axis.source_begin(),
                  .size = axis.source_end() - axis.source_begin()};
  const size_t groups = (static_cast<size_t>(axis.size()) + kColumnsOfGroup - 1) / kColumnsOfGroup;
  const auto blocks = static_cast<size_t>(columns.blocks);
  columns.begins.resize(groups * kColumnsOfGroup);
  columns.weights.resize(groups * kColumnsOfGroup * blocks * kTapsOfBlock);
  std::vector<int16_t> short_weights;
  for (size_t i = 0; i < static_cast<size_t>(axis.size()); ++i) {
    columns.begins[i] = static_cast<int32_t>(axis.begins[i] - columns.first);
    Shorten(axis, static_cast<int64_t>(i), short_weights);
    // Columns i and i + 4 of a group lie side by side.
    const size_t group = i / kColumnsOfGroup, at = i % kColumnsOfGroup, place = at % 4 * 2 + at / 4;
    for (size_t k = 0; k < short_weights.size(); ++k)
      columns.weights[((group * blocks + k / kTapsOfBlock) * kColumnsOfGroup + place) * kTapsOfBlock +
                      k % kTapsOfBlock] = short_weights[k];
  }
  return columns;
}

void PlanarResizer::Prepare(const PlanarPixels& from, const Wish& wish) {
  const Kept wanted{from.width, from.height, wish};
  if (kept_ == wanted) return;
  Window part = wish.part;
  part.width += part.x % 2;
  part.height += part.y % 2;
  part.x -= part.x % 2;
  part.y -= part.y % 2;
  for (size_t i = 0; i < 3; ++i) {
    Plane& plane = planes_[i];
    const int parts = i == 0 ? 1 : 2;
    const auto axis = [&](int extent, int target, int first, int count) {
      return MakeAxis((extent + parts - 1) / parts, static_cast<double>(extent) / parts, target, first,
                      count);
    };
    plane.rows = axis(part.height, wish.height, wish.shown.y, wish.shown.height);
    plane.row_weights.clear();
    std::vector<int16_t> weights;
    for (int64_t row = 0; row < plane.rows.size(); ++row) {
      Shorten(plane.rows, row, weights);
      plane.row_weights.insert(plane.row_weights.end(), weights.begin(), weights.end());
    }
    plane.columns = MakeColumns(axis(part.width, wish.width, wish.shown.x, wish.shown.width));
    plane.left = part.x / parts;
    plane.top = part.y / parts;
    // The taps of a block may lie past the row; their weights are 0.
    plane.summed.assign(
        static_cast<size_t>(plane.columns.size) + static_cast<size_t>(plane.columns.blocks) * kTapsOfBlock,
        0);
    plane.resized.assign(plane.columns.begins.size() + kMostLanes, 0);
  }
  kept_ = wanted;
}

void PlanarResizer::Resize(const PlanarPixels& from, const Wish& wish, Pixels& out) {
  Prepare(from, wish);
  const Factors factors = FactorsOf(from.colours);
  out.width = wish.shown.width;
  out.height = wish.shown.height;
  out.channels = 3;
  const auto width = static_cast<size_t>(out.width);
  const size_t bytes = width * 3 * static_cast<size_t>(out.height);
  out.data.resize(bytes + kMostLanes * 3);
  for (int64_t row = 0; row < out.height; ++row) {
    for (size_t i = 0; i < 3; ++i) {
      Plane& plane = planes_[i];
      const Columns& columns = plane.columns;
      const int32_t count = plane.rows.counts[static_cast<size_t>(row)];
      rows_.clear();
      for (int32_t k = 0; k < count; ++k)
        rows_.push_back(from.planes[i] +
                        (plane.top + plane.rows.begins[static_cast<size_t>(row)] + k) * from.steps[i] +
                        plane.left + columns.first);
      HWY_DYNAMIC_DISPATCH(SumRows)
      (rows_.data(), &plane.row_weights[static_cast<size_t>(row * plane.rows.stride)], count,
       static_cast<size_t>(columns.size), plane.summed.data());
      HWY_DYNAMIC_DISPATCH(SumColumns)
      (plane.summed.data(), columns.begins.data(), columns.weights.data(), columns.blocks,
       columns.begins.size(), plane.resized.data());
    }
    HWY_DYNAMIC_DISPATCH(ToRgb)
    (planes_[0].resized.data(), planes_[1].resized.data(), planes_[2].resized.data(), factors, width,
     out.data.data() + static_cast<size_t>(row) * width * 3);
  }
  out.data.resize(bytes);
}

}  // namespace weir::image
#endif  // HWY_ONCE
