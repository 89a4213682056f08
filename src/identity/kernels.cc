#include "identity/kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "identity/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weir::identity {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 256 columns add at most 512 entries of 127, which 16 bits hold.
constexpr size_t kChunk = 256;

// Adds the entries of `columns` columns for 32 slots. Bytes of even slots lie in the low halves of 16-bit
// lanes and those of slots 16 and up in the high halves.
#if HWY_TARGET == HWY_SCALAR
void AddColumns(const uint8_t* codes, const uint8_t* entries, size_t columns, uint16_t* sums) {
  for (size_t slot = 0; slot < kGroup; ++slot) {
    const uint8_t* code = codes + BytePlace(slot);
    uint16_t sum = 0;
    for (size_t c = 0; c < columns; ++c, code += kGroup)
      sum = static_cast<uint16_t>(sum + entries[c * 32 + (*code & 15)] + entries[c * 32 + 16 + (*code >> 4)]);
    sums[slot] = sum;
  }
}
#else
void AddColumns(const uint8_t* codes, const uint8_t* entries, size_t columns, uint16_t* sums) {
  const hn::CappedTag<uint8_t, kGroup> d8;
  const hn::Repartition<uint16_t, decltype(d8)> d16;
  const auto low_half = hn::Set(d8, 0x0F);
  for (size_t at = 0; at < kGroup; at += hn::Lanes(d8)) {
    auto both = hn::Zero(d16), high = hn::Zero(d16);
    for (size_t c = 0; c < columns; ++c) {
      const auto code = hn::LoadU(d8, codes + c * kGroup + at);
      const auto first = hn::TableLookupBytes(hn::LoadDup128(d8, entries + c * 32), hn::And(code, low_half));
      const auto nibbles = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, code))), low_half);
      const auto second = hn::TableLookupBytes(hn::LoadDup128(d8, entries + c * 32 + 16), nibbles);
      const auto pair = hn::BitCast(d16, hn::Add(first, second));
      both = hn::Add(both, pair);
      high = hn::Add(high, hn::ShiftRight<8>(pair));
    }
    hn::StoreU(hn::Sub(both, hn::ShiftLeft<8>(high)), d16, sums + at / 2);
    hn::StoreU(high, d16, sums + 16 + at / 2);
  }
}
#endif

void Scan(const ScanJob& job, const QueryTables& tables, float base, Highest& highest) {
  const hn::CappedTag<float, 8> df;
  const hn::Rebind<uint16_t, decltype(df)> d16;
  const hn::RebindToSigned<hn::Rebind<uint32_t, decltype(df)>> d32;
  HWY_ALIGN uint16_t sums[kGroup];
  HWY_ALIGN float scores[kGroup], totals[kGroup];
  for (size_t row = 0; row < job.rows; row += kGroup) {
    const uint8_t* codes = job.codes + row * job.columns;
    const float* factors = job.factors + row;
    for (size_t first = 0; first < job.columns; first += kChunk) {
      AddColumns(codes + first * kGroup, tables.entries.data() + first * 32,
                 HWY_MIN(kChunk, job.columns - first), sums);
      for (size_t i = 0; i < kGroup; i += hn::Lanes(df)) {
        auto sum = hn::ConvertTo(df, hn::PromoteTo(d32, hn::LoadU(d16, sums + i)));
        if (first > 0) sum = hn::Add(sum, hn::LoadU(df, totals + i));
        hn::StoreU(sum, df, totals + i);
      }
    }
    const auto step = hn::Set(df, tables.step), bias = hn::Set(df, tables.bias), start = hn::Set(df, base);
    auto best = hn::Set(df, -1e30F);
    for (size_t i = 0; i < kGroup; i += hn::Lanes(df)) {
      const auto product = hn::MulAdd(hn::LoadU(df, totals + i), step, bias);
      const auto score = hn::MulAdd(product, hn::LoadU(df, factors + i), start);
      hn::StoreU(score, df, scores + i);
      best = hn::Max(best, score);
    }
    if (hn::AllFalse(df, hn::Gt(best, hn::Set(df, highest.bound())))) continue;
    const size_t rows = HWY_MIN(kGroup, job.rows - row);
    for (size_t i = 0; i < rows; ++i) {
      if (scores[i] > highest.bound()) highest.Add({scores[i], job.segment, job.first_row + row + i});
    }
  }
}

int32_t Multiply(const int8_t* a, const int8_t* b, size_t size) {
  const hn::ScalableTag<int16_t> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const hn::RepartitionToWide<decltype(d16)> d32;
  auto sum0 = hn::Zero(d32), sum1 = hn::Zero(d32);
  const size_t lanes = hn::Lanes(d16);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    sum0 = hn::ReorderWidenMulAccumulate(d32, hn::PromoteTo(d16, hn::LoadU(d8, a + i)),
                                         hn::PromoteTo(d16, hn::LoadU(d8, b + i)), sum0, sum1);
  }
  int32_t sum = hn::GetLane(hn::SumOfLanes(d32, hn::Add(sum0, sum1)));
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

void MultiplyMany(const int8_t* vector, const int8_t* rows, size_t size, size_t count, int32_t* products) {
  for (size_t r = 0; r < count; ++r) products[r] = Multiply(vector, rows + r * size, size);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::identity
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::identity {
HWY_EXPORT(Scan);
HWY_EXPORT(Multiply);
HWY_EXPORT(MultiplyMany);

namespace {

bool Better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.segment != b.segment ? a.segment < b.segment : a.row < b.row;
}

}  // namespace

Highest::Highest(size_t wanted) : wanted_(std::max<size_t>(wanted, 1)) {}

void Highest::Add(Candidate candidate) {
  if (!(candidate.score > bound_)) return;
  kept_.push_back(candidate);
  if (kept_.size() >= 2 * wanted_) Shrink();
}

void Highest::Shrink() {
  std::ranges::nth_element(kept_, kept_.begin() + static_cast<ptrdiff_t>(wanted_) - 1, Better);
  kept_.resize(wanted_);
  bound_ = kept_.back().score;
}

std::vector<Candidate> Highest::Take() {
  std::ranges::sort(kept_, Better);
  if (kept_.size() > wanted_) kept_.resize(wanted_);
  return std::move(kept_);
}

void ScanList(const ScanJob& job, const QueryTables& tables, float base, Highest& highest) {
  HWY_DYNAMIC_DISPATCH(Scan)(job, tables, base, highest);
}

int32_t Product(const int8_t* a, const int8_t* b, size_t size) {
  return HWY_DYNAMIC_DISPATCH(Multiply)(a, b, size);
}

void Products(const int8_t* vector, const int8_t* rows, size_t size, size_t count, int32_t* products) {
  HWY_DYNAMIC_DISPATCH(MultiplyMany)(vector, rows, size, count, products);
}

}  // namespace weir::identity
#endif
