// Antialiased bilinear resize of the part of a picture that is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "image/decode.h"

namespace weir::image {

// How one axis is resampled: output pixel i is the sum of weights[i * stride + k] * source[begins[i] + k] for
// k < counts[i], over 2^22. begins never decreases with i. Source pixels are counted from the start of the
// whole axis.
struct Axis {
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

// All pixels of an axis of `target` pixels that shows the source's pixels [begin, begin + extent), of
// `source` in all: Pillow's resize with box. Taps reach past the box where the source does. REQUIRES: target
// and extent at least 1; 0 <= begin; begin + extent <= source.
Axis MakeBoxAxis(int64_t source, int64_t begin, int64_t extent, int64_t target);

// The same axis run from its other end, for a picture stored the other way round. `source` is its whole
// length.
Axis Mirror(const Axis& axis, int64_t source);

// Part of a picture that lies in memory: interleaved 8-bit pixels.
struct PixelPart {
  const uint8_t* data;  // the first pixel of the part
  size_t step;          // bytes from one row to the next
  const uint8_t* end;   // of the memory that may be read
  int channels;
};

// Resamples pictures one after the other, keeping its buffers. One thread at a time.
class Resizer {
 public:
  // `window` holds the source pixels from (x.source_begin(), y.source_begin()) on, at least to both source
  // ends. `out` becomes x.size() by y.size(), with the window's channels. Equal to Pillow to the bit: along
  // the rows first, rounded to 8 bits, then along the columns. Memory: as many resampled rows as one output
  // row is made of.
  void Resize(const Pixels& window, const Axis& x, const Axis& y, Pixels& out);

  // The same of rows that come one after the other: `out` is whole once y.source_end() has been reached. The
  // axes and `out` must stay until then.
  void Begin(const Axis& x, const Axis& y, int channels, Pixels& out);
  // The source's rows [first, first + count), from column x.source_begin() on. REQUIRES: Begin, with `rows`'
  // channels; and that `first` is where the last call ended, or not past y.source_begin().
  void Add(const PixelPart& rows, int64_t first, int64_t count);

 private:
  uint8_t* RingRow(int64_t row);
  void SumRow(int64_t row);

  const Axis* x_ = nullptr;
  const Axis* y_ = nullptr;
  Pixels* out_ = nullptr;
  int64_t next_ = 0;                                 // the source row to resample along
  int64_t done_ = 0;                                 // output rows
  std::vector<int32_t> x_pairs_, x_wide_, y_pairs_;  // the weights, as the inner loops take them
  std::vector<uint8_t> ring_;                        // resampled rows
  std::vector<const uint8_t*> rows_;                 // of one output row
};

}  // namespace weir::image
