// An axis' weights as the resizer's inner loops take them. Private to it.
#pragma once

#include <cstdint>
#include <vector>

#include "data/axis.h"

namespace weir::data {

// Weights of 16 bits: all but the lowest `shift` bits of the whole ones, rounded; in pairs, widened. With
// kHalf, a sum of whole weights lies within `reach` of (the sum of these << shift) + `centre`.
struct CoarseWeights {
  int shift = 0;
  std::vector<int32_t> pairs, centre, reach;
};

struct RowWeights {
  static constexpr int kLowBits = 11;  // of the low part of a weight
  static constexpr uint32_t kHalf = 1u << (Axis::kWeightBits - 1);
  static constexpr int kFineTaps = 8;  // of so many taps, or fewer, the whole weights are as fast

  std::vector<int32_t> pairs;  // as PackPairs gives them
  // Of each two output pixels side by side and each of their pairs, four times the one's and four times the
  // other's: as vectors of two pixels take them.
  std::vector<int32_t> wide;
  CoarseWeights coarse;  // of more than kFineTaps taps
};
void MakeRowWeights(const Axis& axis, RowWeights& weights);

// For two taps each the high parts of their weights, then the low parts, as pairs of 16 bits in one number.
void PackPairs(const Axis& axis, std::vector<int32_t>& pairs);

}  // namespace weir::data
