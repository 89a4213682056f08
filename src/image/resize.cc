#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/resize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// The sums are of 22-bit weights and 8-bit levels, in 32 bits. Vectors multiply 16 bits at a time, two taps
// at once, so each weight is taken apart into high * 2^11 + low, which are summed on their own. A sum of low
// parts may wrap; it and the whole are right modulo 2^32, and the whole is below 2^31.
#ifndef WEIR_DATA_RESIZE_COMMON
#define WEIR_DATA_RESIZE_COMMON
namespace weir::image {
namespace {

constexpr int kWeightBits = 22;
constexpr int kLowBits = 11;
constexpr uint32_t kHalf = 1u << (kWeightBits - 1);
// Bytes that may be read past the four taps of a load, and written past an output pixel.
constexpr size_t kSlack = 16;

// A row of source pixels, and how far one may read from it.
struct SourceRow {
  const uint8_t* pixels;  // from x.source_begin() on
  const uint8_t* end;     // of the memory
};

uint8_t LevelOf(uint32_t total) {
  return static_cast<uint8_t>(std::clamp(static_cast<int32_t>(total + kHalf) >> kWeightBits, 0, 255));
}

// Output pixels [first, x.size()), one tap after the other: greys, and what lies too near to the memory's
// end.
void SumAlong(const Axis& x, int channels, int64_t first, const uint8_t* row, uint8_t* out) {
  for (int64_t i = first; i < x.size(); ++i) {
    const int32_t* weights = &x.weights[i * x.stride];
    for (int c = 0; c < channels; ++c) {
      const uint8_t* p = row + (x.begins[i] - x.source_begin()) * channels + c;
      uint32_t total = 0;
      for (int32_t k = 0; k < x.counts[i]; ++k, p += channels)
        total += static_cast<uint32_t>(weights[k]) * *p;
      out[i * channels + c] = LevelOf(total);
    }
  }
}

// The pairs of two output pixels side by side, each four times, as SumTwoPixels3 loads them: for pixels 2j
// and 2j + 1 and each k of the stride, four of the one and four of the other.
void WidenPairs(const std::vector<int32_t>& pairs, int32_t stride, std::vector<int32_t>& wide) {
  const size_t taps = static_cast<size_t>(stride), two = 2 * taps;
  wide.resize(pairs.size() / two * taps * 8);
  int32_t* out = wide.data();
  for (size_t first = 0; first + two <= pairs.size(); first += two) {
    for (size_t k = 0; k < taps; ++k, out += 8) {
      std::fill_n(out, 4, pairs[first + k]);
      std::fill_n(out + 4, 4, pairs[first + taps + k]);
    }
  }
}

// For two taps each the high parts of their weights, then the low parts, as pairs of 16 bits in one number.
void PackPairs(const Axis& axis, std::vector<int32_t>& pairs) {
  const auto pair = [](int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b) << 16);
  };
  constexpr int32_t kLowMask = (1 << kLowBits) - 1;
  pairs.resize(axis.weights.size());
  for (size_t k = 0; k < pairs.size(); k += 2) {
    const int32_t a = axis.weights[k], b = axis.weights[k + 1];
    pairs[k] = pair(a >> kLowBits, b >> kLowBits);
    pairs[k + 1] = pair(a & kLowMask, b & kLowMask);
  }
}

}  // namespace
}  // namespace weir::image
#endif

HWY_BEFORE_NAMESPACE();
namespace weir::image {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

int64_t SumAlong3(const Axis&, const int32_t*, const int32_t*, const SourceRow&, uint8_t*) { return 0; }

void SumDown(const uint8_t* const* rows, const int32_t* pairs, int32_t count, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; ++i) {
    uint32_t total = 0;
    for (int32_t k = 0; k < count; ++k) {
      const int shift = 16 * (k % 2);
      const uint32_t high = static_cast<uint32_t>(pairs[k / 2 * 2]) >> shift & 0xffff;
      const uint32_t low = static_cast<uint32_t>(pairs[k / 2 * 2 + 1]) >> shift & 0xffff;
      total += ((high << kLowBits) + low) * rows[k][i];
    }
    out[i] = LevelOf(total);
  }
}

#else

using D8 = hn::FixedTag<uint8_t, 16>;
using D16 = hn::FixedTag<int16_t, 8>;
using D32 = hn::FixedTag<int32_t, 4>;
using V16 = hn::Vec<D16>;

// kSums sums over pairs of taps, kept as Highway's widening product wants them.
template <size_t kSums>
struct SumsOf {
  using DSum = hn::FixedTag<int32_t, kSums>;
  using VSum = hn::Vec<DSum>;
  using VPair = hn::Vec<hn::FixedTag<int16_t, 2 * kSums> >;
  VSum high0, high1, low0, low1;

  HWY_INLINE SumsOf() : high0(hn::Zero(DSum())), high1(high0), low0(high0), low1(high0) {}
  HWY_INLINE void Add(VPair levels, VPair high, VPair low) {
    high0 = hn::ReorderWidenMulAccumulate(DSum(), levels, high, high0, high1);
    low0 = hn::ReorderWidenMulAccumulate(DSum(), levels, low, low0, low1);
  }
  HWY_INLINE VSum Levels() const {
    const VSum high = hn::RearrangeToOddPlusEven(high0, high1), low = hn::RearrangeToOddPlusEven(low0, low1);
    const VSum total = hn::Add(hn::Add(hn::ShiftLeft<kLowBits>(high), low), hn::Set(DSum(), kHalf));
    return hn::ShiftRight<kWeightBits>(total);
  }
};
using Sums = SumsOf<4>;

HWY_INLINE V16 PairOf(int32_t pair) { return hn::BitCast(D16(), hn::Set(D32(), pair)); }

// Two pixels' channels side by side in 16 bits each: r0 r1 g0 g1 b0 b1 and nothing.
constexpr uint8_t kNone = 0x80;
alignas(16) constexpr uint8_t kFirstTwo[16] = {0, kNone, 3, kNone, 1,     kNone, 4,     kNone,
                                               2, kNone, 5, kNone, kNone, kNone, kNone, kNone};
alignas(16) constexpr uint8_t kSecondTwo[16] = {6, kNone, 9,  kNone, 7,     kNone, 10,    kNone,
                                                8, kNone, 11, kNone, kNone, kNone, kNone, kNone};

// Output pixels from `i` on of three channels, four taps at a time; kTaps is x.stride, or 0 for one that no
// other case is for. Gives how many pixels were made before reading would pass the end of the memory.
template <int kTaps>
int64_t SumPixels3(const Axis& x, const int32_t* pairs, const SourceRow& row, uint8_t* out, int64_t i) {
  const auto first = hn::Load(D8(), kFirstTwo), second = hn::Load(D8(), kSecondTwo);
  const int taps = kTaps == 0 ? x.stride : kTaps;
  const auto needed = static_cast<int64_t>(3 * taps + kSlack);
  pairs += i * taps;
  for (; i < x.size(); ++i, pairs += taps) {
    const uint8_t* p = row.pixels + 3 * (x.begins[i] - x.source_begin());
    if (row.end - p < needed) break;
    Sums sums;
    for (int k = 0; k < taps; k += 4, p += 12) {
      const auto pixels = hn::LoadU(D8(), p);
      sums.Add(hn::BitCast(D16(), hn::TableLookupBytesOr0(pixels, first)), PairOf(pairs[k]),
               PairOf(pairs[k + 1]));
      sums.Add(hn::BitCast(D16(), hn::TableLookupBytesOr0(pixels, second)), PairOf(pairs[k + 2]),
               PairOf(pairs[k + 3]));
    }
    const hn::Rebind<uint8_t, D32> d;
    hn::StoreU(hn::DemoteTo(d, sums.Levels()), d,
               out + 3 * i);  // a byte more, which the next pixel overwrites
  }
  return i;
}

#if HWY_CAP_GE256

// Two output pixels at a time, one in each half of a vector; the rest is for SumPixels3.
template <int kTaps>
int64_t SumTwoPixels3(const Axis& x, const int32_t* wide, const SourceRow& row, uint8_t* out) {
  const hn::FixedTag<uint8_t, 32> d8;
  const hn::FixedTag<int16_t, 16> d16;
  const hn::FixedTag<int32_t, 8> d32;
  const auto first = hn::LoadDup128(d8, kFirstTwo), second = hn::LoadDup128(d8, kSecondTwo);
  const int taps = kTaps == 0 ? x.stride : kTaps;
  const auto needed = static_cast<int64_t>(3 * taps + kSlack);
  const auto pair = [&](int k) { return hn::BitCast(d16, hn::LoadU(d32, wide + 8 * k)); };
  int64_t i = 0;
  for (; i + 2 <= x.size(); i += 2, wide += 8 * taps) {
    const uint8_t* a = row.pixels + 3 * (x.begins[i] - x.source_begin());
    const uint8_t* b = row.pixels + 3 * (x.begins[i + 1] - x.source_begin());
    if (row.end - b < needed) break;
    SumsOf<8> sums;
    for (int k = 0; k < taps; k += 4, a += 12, b += 12) {
      const auto pixels = hn::Combine(d8, hn::LoadU(D8(), b), hn::LoadU(D8(), a));
      sums.Add(hn::BitCast(d16, hn::TableLookupBytesOr0(pixels, first)), pair(k), pair(k + 1));
      sums.Add(hn::BitCast(d16, hn::TableLookupBytesOr0(pixels, second)), pair(k + 2), pair(k + 3));
    }
    const hn::Rebind<uint8_t, decltype(d32)> d;
    const auto levels = hn::BitCast(hn::FixedTag<uint64_t, 1>(), hn::DemoteTo(d, sums.Levels()));
    const uint64_t both = hn::GetLane(levels);
    std::memcpy(out + 3 * i, &both, 4);  // a byte more, which the next pixel overwrites
    const auto upper = static_cast<uint32_t>(both >> 32);
    std::memcpy(out + 3 * i + 3, &upper, 4);
  }
  return i;
}

#else

template <int kTaps>
int64_t SumTwoPixels3(const Axis&, const int32_t*, const SourceRow&, uint8_t*) {
  return 0;
}

#endif

template <int kTaps>
int64_t SumAllPixels3(const Axis& x, const int32_t* pairs, const int32_t* wide, const SourceRow& row,
                      uint8_t* out) {
  return SumPixels3<kTaps>(x, pairs, row, out, SumTwoPixels3<kTaps>(x, wide, row, out));
}

int64_t SumAlong3(const Axis& x, const int32_t* pairs, const int32_t* wide, const SourceRow& row,
                  uint8_t* out) {
  switch (x.stride) {
    case 4:
      return SumAllPixels3<4>(x, pairs, wide, row, out);
    case 8:
      return SumAllPixels3<8>(x, pairs, wide, row, out);
    default:
      return SumAllPixels3<0>(x, pairs, wide, row, out);
  }
}

constexpr size_t kDown = HWY_CAP_GE256 ? 16 : 8;

// kDown values of the output row from `count` rows (even).
HWY_INLINE void SumSomeDown(const uint8_t* const* rows, const int32_t* pairs, int32_t count, size_t i,
                            uint8_t* out) {
  const hn::FixedTag<uint8_t, kDown> d8;
  const hn::FixedTag<int16_t, kDown> d16;
  const hn::FixedTag<int32_t, kDown / 2> d32;
  SumsOf<kDown / 2> lower, upper;  // of each 128 bits
  for (int32_t k = 0; k < count; k += 2) {
    const auto a = hn::PromoteTo(d16, hn::LoadU(d8, rows[k] + i)),
               b = hn::PromoteTo(d16, hn::LoadU(d8, rows[k + 1] + i));
    const auto high = hn::BitCast(d16, hn::Set(d32, pairs[k])),
               low = hn::BitCast(d16, hn::Set(d32, pairs[k + 1]));
    lower.Add(hn::InterleaveLower(d16, a, b), high, low);
    upper.Add(hn::InterleaveUpper(d16, a, b), high, low);
  }
  auto first = lower.Levels(), second = upper.Levels();
#if HWY_CAP_GE256
  const auto of_lower = first;
  first = hn::ConcatLowerLower(d32, second, of_lower);
  second = hn::ConcatUpperUpper(d32, second, of_lower);
#endif
  const hn::FixedTag<uint8_t, kDown / 2> half;
  hn::StoreU(hn::DemoteTo(half, first), half, out + i);
  hn::StoreU(hn::DemoteTo(half, second), half, out + i + kDown / 2);
}

// One output row of n values from `count` rows (even, the last perhaps with weight 0), each with kSlack bytes
// after it.
void SumDown(const uint8_t* const* rows, const int32_t* pairs, int32_t count, size_t n, uint8_t* out) {
  static_assert(kDown <= kSlack);
  size_t i = 0;
  for (; i + kDown <= n; i += kDown) SumSomeDown(rows, pairs, count, i, out);
  if (i == n) return;
  uint8_t rest[kDown];
  std::vector<const uint8_t*> shifted(rows, rows + count);
  for (const uint8_t*& row : shifted) row += i;
  SumSomeDown(shifted.data(), pairs, count, 0, rest);
  std::memcpy(out + i, rest, n - i);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace weir::image
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::image {

HWY_EXPORT(SumAlong3);
HWY_EXPORT(SumDown);

Axis MakeAxis(int64_t source, int64_t target, int64_t first, int64_t count) {
  return MakeAxis(source, static_cast<double>(source), target, first, count);
}

namespace {

// The axis shows `extent` of the source's pixels from `origin` on.
Axis FilterAxis(int64_t source, double origin, double extent, int64_t target, int64_t first, int64_t count) {
  const double scale = extent / static_cast<double>(target);
  const double filter_scale = std::max(scale, 1.0);
  const double support =
      filter_scale;  // the triangle reaches 1 source pixel, or 1 target pixel when reducing
  const double inverse = 1.0 / filter_scale;
  Axis axis;
  axis.begins.resize(count);
  axis.counts.resize(count);
  const auto centre = [&](int64_t i) { return origin + (static_cast<double>(first + i) + 0.5) * scale; };
  for (int64_t i = 0; i < count; ++i) {
    axis.begins[i] = std::max<int64_t>(static_cast<int64_t>(centre(i) - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre(i) + support + 0.5), source);
    axis.counts[i] = static_cast<int32_t>(end - axis.begins[i]);
    axis.stride = std::max(axis.stride, (axis.counts[i] + 3) / 4 * 4);
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
    constexpr double kUnits = 1 << kWeightBits;
    for (int32_t k = 0; k < axis.counts[i]; ++k) {
      const double share = total != 0.0 ? shares[k] / total : shares[k];
      axis.weights[i * axis.stride + k] = static_cast<int32_t>(0.5 + share * kUnits);
    }
  }
  return axis;
}

}  // namespace

Axis MakeAxis(int64_t source, double extent, int64_t target, int64_t first, int64_t count) {
  return FilterAxis(source, 0, extent, target, first, count);
}

Axis MakeBoxAxis(int64_t source, int64_t begin, int64_t extent, int64_t target) {
  return FilterAxis(source, static_cast<double>(begin), static_cast<double>(extent), target, 0, target);
}

Axis Mirror(const Axis& axis, int64_t source) {
  Axis mirrored = axis;
  std::ranges::fill(mirrored.weights, 0);
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

void Resizer::Begin(const Axis& x, const Axis& y, int channels, Pixels& out) {
  x_ = &x;
  y_ = &y;
  out_ = &out;
  next_ = y.source_begin();
  done_ = 0;
  PackPairs(x, x_pairs_);
  if (channels == 3) WidenPairs(x_pairs_, x.stride, x_wide_);
  PackPairs(y, y_pairs_);
  out.width = static_cast<int>(x.size());
  out.height = static_cast<int>(y.size());
  out.channels = channels;
  const size_t out_step = static_cast<size_t>(x.size()) * channels;
  out.data.resize(out_step * y.size());
  ring_.resize((out_step + kSlack) * y.stride);
}

uint8_t* Resizer::RingRow(int64_t row) {
  const size_t step = static_cast<size_t>(out_->width) * out_->channels + kSlack;
  return ring_.data() + row % y_->stride * step;
}

// The output row `row` of resampled rows.
void Resizer::SumRow(int64_t row) {
  const int64_t begin = y_->begins[row], end = begin + y_->counts[row];
  rows_.clear();
  for (int64_t source = begin; source < end; ++source) rows_.push_back(RingRow(source));
  if (rows_.size() % 2 == 1) rows_.push_back(rows_.back());  // its weight is 0
  const size_t step = static_cast<size_t>(out_->width) * out_->channels;
  HWY_DYNAMIC_DISPATCH(SumDown)(rows_.data(), &y_pairs_[row * y_->stride], static_cast<int32_t>(rows_.size()),
                                step, out_->data.data() + row * step);
}

void Resizer::Add(const PixelPart& rows, int64_t first, int64_t count) {
  const auto sum_along3 = HWY_DYNAMIC_DISPATCH(SumAlong3);
  for (; done_ < y_->size(); ++done_) {
    const int64_t end = y_->begins[done_] + y_->counts[done_];
    for (next_ = std::max(next_, y_->begins[done_]); next_ < std::min(end, first + count); ++next_) {
      const uint8_t* pixels = rows.data + static_cast<size_t>(next_ - first) * rows.step;
      int64_t done = 0;
      if (rows.channels == 3)
        done = sum_along3(*x_, x_pairs_.data(), x_wide_.data(), {pixels, rows.end}, RingRow(next_));
      SumAlong(*x_, rows.channels, done, pixels, RingRow(next_));
    }
    if (next_ < end) return;
    SumRow(done_);
  }
}

void Resizer::Resize(const Pixels& window, const Axis& x, const Axis& y, Pixels& out) {
  Begin(x, y, window.channels, out);
  const uint8_t* data = window.data.data();
  Add({data, static_cast<size_t>(window.width) * window.channels, data + window.data.size(), window.channels},
      y.source_begin(), y.source_end() - y.source_begin());
}

}  // namespace weir::image
#endif  // HWY_ONCE
