#include "data/resize_weights.h"

#include <algorithm>
#include <limits>

namespace weir::data {
namespace {

constexpr int kLargestLevel = 255;

int32_t PairOf(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b) << 16);
}

// Of each two output pixels side by side and each of their `count` values, four times the one's and four
// times the other's: as vectors of two pixels take them.
void Widen(const std::vector<int32_t>& values, size_t count, std::vector<int32_t>& wide) {
  const size_t two = 2 * count;
  wide.resize(values.size() / two * count * 8);
  int32_t* out = wide.data();
  for (size_t first = 0; first + two <= values.size(); first += two) {
    for (size_t k = 0; k < count; ++k, out += 8) {
      std::fill_n(out, 4, values[first + k]);
      std::fill_n(out + 4, 4, values[first + count + k]);
    }
  }
}

// A sum of whole weights, with kHalf, lies within `reach` of (the sum of the coarse ones << shift) + centre:
// what a weight is more than its coarse one adds at most 255 times as much, and so does what it is less.
void MakeCoarse(const Axis& axis, CoarseWeights& coarse) {
  const int32_t largest = *std::ranges::max_element(axis.weights);
  const auto round = [&](int32_t weight) { return (weight + (1 << coarse.shift >> 1)) >> coarse.shift; };
  coarse.shift = 0;
  while (round(largest) > std::numeric_limits<int16_t>::max()) ++coarse.shift;
  std::vector<int32_t> pairs, centre, reach;
  for (int64_t i = 0; i < axis.size(); ++i) {
    const int32_t* weights = &axis.weights[i * axis.stride];
    int64_t more = 0, less = 0;
    for (int32_t k = 0; k < axis.stride; ++k) {
      const int32_t off = weights[k] - (round(weights[k]) << coarse.shift);
      (off > 0 ? more : less) += off;
      if (k % 2 == 1) pairs.push_back(PairOf(round(weights[k - 1]), round(weights[k])));
    }
    centre.push_back(static_cast<int32_t>(RowWeights::kHalf + kLargestLevel * (more + less) / 2));
    reach.push_back(static_cast<int32_t>(kLargestLevel * (more - less) / 2 + 1));
  }
  Widen(pairs, static_cast<size_t>(axis.stride) / 2, coarse.pairs);
  Widen(centre, 1, coarse.centre);
  Widen(reach, 1, coarse.reach);
}

}  // namespace

void PackPairs(const Axis& axis, std::vector<int32_t>& pairs) {
  constexpr int32_t kLowMask = (1 << RowWeights::kLowBits) - 1;
  pairs.resize(axis.weights.size());
  for (size_t k = 0; k < pairs.size(); k += 2) {
    const int32_t a = axis.weights[k], b = axis.weights[k + 1];
    pairs[k] = PairOf(a >> RowWeights::kLowBits, b >> RowWeights::kLowBits);
    pairs[k + 1] = PairOf(a & kLowMask, b & kLowMask);
  }
}

void MakeRowWeights(const Axis& axis, RowWeights& weights) {
  PackPairs(axis, weights.pairs);
  Widen(weights.pairs, static_cast<size_t>(axis.stride), weights.wide);
  if (axis.stride > RowWeights::kFineTaps) MakeCoarse(axis, weights.coarse);
}

}  // namespace weir::data
