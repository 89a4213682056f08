// Which source pixels an output pixel is made of, along one axis, and their weights.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::data {

// How one axis is resampled: output pixel i is the sum of weights[i * stride + k] * source[begins[i] + k] for
// k < counts[i], over 2^22. begins never decreases with i. Source pixels are counted from the start of the
// whole axis.
struct Axis {
  static constexpr int kWeightBits = 22;
  std::vector<int64_t> begins;
  std::vector<int32_t> counts;
  std::vector<int32_t> weights;  // 0 to 2^22
  int32_t stride = 0;            // the largest count, rounded up to 4; weights past a pixel's own count are 0

  int64_t size() const { return static_cast<int64_t>(begins.size()); }
  int64_t source_begin() const { return begins.front(); }
  int64_t source_end() const { return begins.back() + counts.back(); }
};

// Pixels [first, first + count) of an axis of `source` pixels resized to `target`: Pillow's triangle filter,
// its support scaled by the reduction. Arithmetic as precompute_coeffs and normalize_coeffs_8bpc of
// Pillow 9.4 src/libImaging/Resample.c have it, down to the weights' 22 bits. REQUIRES: source, target and
// count at least 1; 0 <= first; first + count <= target.
Axis MakeAxis(int64_t source, int64_t target, int64_t first, int64_t count);
// The same where the axis is only `extent` long, in its pixels: the last one reaches over the edge of a
// picture that was decoded at a fraction of its size. REQUIRES: source - 1 < extent <= source.
Axis MakeAxis(int64_t source, double extent, int64_t target, int64_t first, int64_t count);

// The same axis run from its other end, for a picture stored the other way round. `source` is its whole
// length.
Axis Mirror(const Axis& axis, int64_t source);

}  // namespace weir::data
