// Antialiased bilinear resize of the part of a picture that is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/axis.h"
#include "data/decode.h"
#include "data/resize_weights.h"

namespace weir::data {

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
  int64_t next_ = 0;                  // the source row to resample along
  int64_t done_ = 0;                  // output rows
  RowWeights row_;                    // of x
  std::vector<int32_t> y_pairs_;      // of y
  std::vector<uint8_t> ring_;         // resampled rows
  std::vector<const uint8_t*> rows_;  // of one output row
};

}  // namespace weir::data
