#include "identity/scan.h"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "identity/scan.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weir::identity {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void GroupDistances(const uint64_t* group, const uint64_t* query, size_t words, uint64_t* distances) {
  const hn::CappedTag<uint64_t, kGroup> d;
  for (size_t lane = 0; lane < kGroup; lane += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (size_t w = 0; w < words; ++w) {
      const auto differ = hn::Xor(hn::LoadU(d, group + kGroup * w + lane), hn::Set(d, query[w]));
      sum = hn::Add(sum, hn::PopulationCount(differ));
    }
    hn::StoreU(sum, d, distances + lane);
  }
}

void Scan(const uint64_t* codes, size_t first, size_t last, size_t words, const uint64_t* queries,
          Nearest* nearest, size_t count) {
  alignas(64) uint64_t distances[kGroup];
  for (size_t row = first; row < last; row += kGroup) {
    const uint64_t* group = codes + row * words;
    const size_t rows = HWY_MIN(kGroup, last - row);
    for (size_t q = 0; q < count; ++q) {
      GroupDistances(group, queries + q * words, words, distances);
      const uint64_t bound = nearest[q].bound();
      for (size_t i = 0; i < rows; ++i) {
        if (distances[i] < bound) nearest[q].Add({static_cast<uint32_t>(distances[i]), row + i});
      }
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

}  // namespace HWY_NAMESPACE
}  // namespace weir::identity
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::identity {
HWY_EXPORT(Scan);
HWY_EXPORT(Multiply);

Nearest::Nearest(size_t wanted) : wanted_(std::max<size_t>(wanted, 1)) { kept_.reserve(2 * wanted_); }

void Nearest::Add(Candidate candidate) {
  if (candidate.distance >= bound_) return;
  kept_.push_back(candidate);
  if (kept_.size() >= 2 * wanted_) Shrink();
}

void Nearest::Shrink() {
  const auto nearer = [](const Candidate& a, const Candidate& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
  };
  std::ranges::nth_element(kept_, kept_.begin() + static_cast<ptrdiff_t>(wanted_) - 1, nearer);
  kept_.resize(wanted_);
  bound_ = kept_.back().distance;
}

std::vector<Candidate> Nearest::Take() {
  std::ranges::sort(kept_, [](const Candidate& a, const Candidate& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
  });
  if (kept_.size() > wanted_) kept_.resize(wanted_);
  return std::move(kept_);
}

void ScanCodes(const uint64_t* codes, size_t first, size_t last, size_t words, const uint64_t* queries,
               std::span<Nearest> nearest) {
  HWY_DYNAMIC_DISPATCH(Scan)(codes, first, last, words, queries, nearest.data(), nearest.size());
}

int32_t Product(const int8_t* a, const int8_t* b, size_t size) {
  return HWY_DYNAMIC_DISPATCH(Multiply)(a, b, size);
}

}  // namespace weir::identity
#endif
