#include "data/resize.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/resize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// The sums are of 22-bit weights and 8-bit levels, in 32 bits. Vectors multiply 16 bits at a time, two taps
// at once, so each weight is taken apart into high * 2^11 + low, which are summed on their own. A sum of low
// parts may wrap; it and the whole are right modulo 2^32, and the whole is below 2^31.
//
// Along rows that become much shorter, which is where a large photo's time goes, weights of 16 bits are tried
// first. How far their sum may be off is known for each output pixel; where a rounding step lies within that,
// about once in a hundred, the whole weights decide. The levels are the same.
#ifndef WEIR_DATA_RESIZE_COMMON
#define WEIR_DATA_RESIZE_COMMON
namespace weir::data {
namespace {

constexpr int kWeightBits = Axis::kWeightBits;
constexpr int kLowBits = RowWeights::kLowBits;
constexpr uint32_t kHalf = RowWeights::kHalf;
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

}  // namespace
}  // namespace weir::data
#endif

HWY_BEFORE_NAMESPACE();
namespace weir::data {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

int64_t SumAlong3(const Axis&, const RowWeights&, const SourceRow&, uint8_t*) { return 0; }

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

HWY_INLINE V16 Repeat(int32_t pair) { return hn::BitCast(D16(), hn::Set(D32(), pair)); }

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
      sums.Add(hn::BitCast(D16(), hn::TableLookupBytesOr0(pixels, first)), Repeat(pairs[k]),
               Repeat(pairs[k + 1]));
      sums.Add(hn::BitCast(D16(), hn::TableLookupBytesOr0(pixels, second)), Repeat(pairs[k + 2]),
               Repeat(pairs[k + 3]));
    }
    const hn::Rebind<uint8_t, D32> d;
    hn::StoreU(hn::DemoteTo(d, sums.Levels()), d,
               out + 3 * i);  // a byte more, which the next pixel overwrites
  }
  return i;
}

#if HWY_CAP_GE256

using D8Two = hn::FixedTag<uint8_t, 32>;
using D16Two = hn::FixedTag<int16_t, 16>;
using D32Two = hn::FixedTag<int32_t, 8>;
using VTwo = hn::Vec<D32Two>;

// Of two output pixels, one in each half of a vector, four taps: calls add(levels of two taps, which two).
template <typename AddTaps>
HWY_INLINE void FourTapsOfTwo(const uint8_t* a, const uint8_t* b, const AddTaps& add) {
  const D8Two d8;
  const auto pixels = hn::Combine(d8, hn::LoadU(D8(), b), hn::LoadU(D8(), a));
  add(hn::BitCast(D16Two(), hn::TableLookupBytesOr0(pixels, hn::LoadDup128(d8, kFirstTwo))), 0);
  add(hn::BitCast(D16Two(), hn::TableLookupBytesOr0(pixels, hn::LoadDup128(d8, kSecondTwo))), 1);
}

HWY_INLINE hn::Vec<D16Two> LoadPairs(const int32_t* wide) {
  return hn::BitCast(D16Two(), hn::LoadU(D32Two(), wide));
}

// The levels of two output pixels whose taps begin at `a` and `b`.
HWY_INLINE VTwo LevelsOfTwo(const uint8_t* a, const uint8_t* b, int taps, const int32_t* wide) {
  SumsOf<8> sums;
  for (int k = 0; k < taps; k += 4, a += 12, b += 12, wide += 32) {
    FourTapsOfTwo(a, b, [&](auto levels, int which) HWY_ATTR {
      sums.Add(levels, LoadPairs(wide + 16 * which), LoadPairs(wide + 16 * which + 8));
    });
  }
  return sums.Levels();
}

// The same by coarse weights; false where they cannot tell.
HWY_INLINE bool CoarseLevelsOfTwo(const uint8_t* a, const uint8_t* b, int taps, const CoarseWeights& coarse,
                                  int64_t i, VTwo& levels) {
  const D32Two d;
  const int32_t* pairs = coarse.pairs.data() + 2 * taps * i;
  VTwo sum0 = hn::Zero(d), sum1 = sum0;
  for (int k = 0; k < taps; k += 4, a += 12, b += 12, pairs += 16) {
    FourTapsOfTwo(a, b, [&](auto four, int which) HWY_ATTR {
      sum0 = hn::ReorderWidenMulAccumulate(d, four, LoadPairs(pairs + 8 * which), sum0, sum1);
    });
  }
  const VTwo sum = hn::ShiftLeftSame(hn::RearrangeToOddPlusEven(sum0, sum1), coarse.shift);
  const VTwo total = hn::Add(sum, hn::LoadU(d, coarse.centre.data() + 4 * i));
  const VTwo reach = hn::LoadU(d, coarse.reach.data() + 4 * i);
  const VTwo past_step = hn::And(hn::Add(total, reach), hn::Set(d, (1 << kWeightBits) - 1));
  levels = hn::ShiftRight<kWeightBits>(total);
  return hn::AllFalse(d, hn::Lt(past_step, hn::Add(reach, reach)));
}

HWY_INLINE void StoreTwo(VTwo values, uint8_t* out) {
  const hn::Rebind<uint8_t, D32Two> d;
  const uint64_t both = hn::GetLane(hn::BitCast(hn::FixedTag<uint64_t, 1>(), hn::DemoteTo(d, values)));
  std::memcpy(out, &both, 4);  // a byte more, which the next pixel overwrites
  const auto upper = static_cast<uint32_t>(both >> 32);
  std::memcpy(out + 3, &upper, 4);
}

// Two output pixels at a time; the rest is for SumPixels3.
template <int kTaps>
int64_t SumTwoPixels3(const Axis& x, const RowWeights& weights, const SourceRow& row, uint8_t* out) {
  const int taps = kTaps == 0 ? x.stride : kTaps;
  const auto needed = static_cast<int64_t>(3 * taps + kSlack);
  int64_t i = 0;
  for (; i + 2 <= x.size(); i += 2) {
    const uint8_t* a = row.pixels + 3 * (x.begins[i] - x.source_begin());
    const uint8_t* b = row.pixels + 3 * (x.begins[i + 1] - x.source_begin());
    if (row.end - b < needed) break;
    VTwo levels;
    if (kTaps != 0 || !CoarseLevelsOfTwo(a, b, taps, weights.coarse, i, levels))
      levels = LevelsOfTwo(a, b, taps, weights.wide.data() + 4 * taps * i);
    StoreTwo(levels, out + 3 * i);
  }
  return i;
}

#else

template <int kTaps>
int64_t SumTwoPixels3(const Axis&, const RowWeights&, const SourceRow&, uint8_t*) {
  return 0;
}

#endif

template <int kTaps>
int64_t SumAllPixels3(const Axis& x, const RowWeights& weights, const SourceRow& row, uint8_t* out) {
  return SumPixels3<kTaps>(x, weights.pairs.data(), row, out, SumTwoPixels3<kTaps>(x, weights, row, out));
}

int64_t SumAlong3(const Axis& x, const RowWeights& weights, const SourceRow& row, uint8_t* out) {
  static_assert(RowWeights::kFineTaps == 8);
  switch (x.stride) {
    case 4:
      return SumAllPixels3<4>(x, weights, row, out);
    case 8:
      return SumAllPixels3<8>(x, weights, row, out);
    default:
      return SumAllPixels3<0>(x, weights, row, out);
  }
}

// kDown values of the output row from `count` rows (even).
#if HWY_CAP_GE256

constexpr size_t kDown = 16;
HWY_INLINE void SumSomeDown(const uint8_t* const* rows, const int32_t* pairs, int32_t count, size_t i,
                            uint8_t* out) {
  const hn::Rebind<uint8_t, D16Two> d;
  SumsOf<8> lower, upper;  // of each half of a vector
  for (int32_t k = 0; k < count; k += 2) {
    const auto a = hn::PromoteTo(D16Two(), hn::LoadU(d, rows[k] + i)),
               b = hn::PromoteTo(D16Two(), hn::LoadU(d, rows[k + 1] + i));
    const auto high = hn::BitCast(D16Two(), hn::Set(D32Two(), pairs[k])),
               low = hn::BitCast(D16Two(), hn::Set(D32Two(), pairs[k + 1]));
    lower.Add(hn::InterleaveLower(D16Two(), a, b), high, low);
    upper.Add(hn::InterleaveUpper(D16Two(), a, b), high, low);
  }
  const hn::Rebind<uint8_t, D32Two> d8;
  const VTwo of_lower = lower.Levels(), of_upper = upper.Levels();
  hn::StoreU(hn::DemoteTo(d8, hn::ConcatLowerLower(D32Two(), of_upper, of_lower)), d8, out + i);
  hn::StoreU(hn::DemoteTo(d8, hn::ConcatUpperUpper(D32Two(), of_upper, of_lower)), d8, out + i + 8);
}

#else

constexpr size_t kDown = 8;
HWY_INLINE void SumSomeDown(const uint8_t* const* rows, const int32_t* pairs, int32_t count, size_t i,
                            uint8_t* out) {
  const hn::Rebind<uint8_t, D16> d;
  Sums lower, upper;
  for (int32_t k = 0; k < count; k += 2) {
    const V16 a = hn::PromoteTo(D16(), hn::LoadU(d, rows[k] + i)),
              b = hn::PromoteTo(D16(), hn::LoadU(d, rows[k + 1] + i));
    const V16 high = Repeat(pairs[k]), low = Repeat(pairs[k + 1]);
    lower.Add(hn::InterleaveLower(D16(), a, b), high, low);
    upper.Add(hn::InterleaveUpper(D16(), a, b), high, low);
  }
  const hn::Rebind<uint8_t, D32> d4;
  hn::StoreU(hn::DemoteTo(d4, lower.Levels()), d4, out + i);
  hn::StoreU(hn::DemoteTo(d4, upper.Levels()), d4, out + i + 4);
}

#endif

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
}  // namespace weir::data
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::data {

HWY_EXPORT(SumAlong3);
HWY_EXPORT(SumDown);

void Resizer::Begin(const Axis& x, const Axis& y, int channels, Pixels& out) {
  x_ = &x;
  y_ = &y;
  out_ = &out;
  next_ = y.source_begin();
  done_ = 0;
  if (channels == 3) MakeRowWeights(x, row_);
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
      if (rows.channels == 3) done = sum_along3(*x_, row_, {pixels, rows.end}, RingRow(next_));
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

}  // namespace weir::data
#endif  // HWY_ONCE
