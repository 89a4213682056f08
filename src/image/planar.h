// Decoded video, as planes of luma and chroma, to RGB at another size in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "image/decode.h"
#include "image/resize.h"

namespace weir::image {

// How luma and chroma make up a colour: the weights of red and blue in luma. The default is ITU-R BT.601.
struct YuvColours {
  double red = 0.299, blue = 0.114;
  bool full_range = false;  // luma of 0 to 255 rather than 16 to 235
  bool operator==(const YuvColours&) const = default;
};

// A 4:2:0 picture of 8 bits in memory of others: Y, Cb and Cr. The sides of chroma are half of luma's,
// rounded up, and its samples lie amid four of luma's.
struct PlanarPixels {
  const uint8_t* planes[3] = {};
  ptrdiff_t steps[3] = {};  // bytes from one row to the next
  int width = 0, height = 0;
  YuvColours colours;
};

// Resizes pictures one after the other, keeping its buffers and the weights of the last size. One thread at a
// time.
class PlanarResizer {
 public:
  struct Wish {
    Window part;                // of the picture; widened so that it begins at even coordinates
    int width = 0, height = 0;  // that the part is resized to
    Window shown;               // of the resized part
    bool operator==(const Wish&) const = default;
  };
  // `out` becomes the shown part in RGB. The filter is that of MakeAxis, for each plane on its own; levels
  // differ from exact arithmetic by 1 at most. REQUIRES: both windows lie inside and are not empty.
  void Resize(const PlanarPixels& from, const Wish& wish, Pixels& out);

 private:
  // An axis of one plane, with weights of 15 bits.
  struct Columns {
    std::vector<int32_t> begins;   // from the first column that is read
    std::vector<int16_t> weights;  // in the order of SumColumns
    int32_t blocks = 0;            // of 8 taps
    int64_t first = 0, size = 0;   // columns that are read
  };
  struct Plane {
    Axis rows;
    std::vector<int16_t> row_weights;
    Columns columns;
    int64_t left = 0, top = 0;  // of the part
    std::vector<int16_t> summed, resized;
  };
  struct Kept {
    int width, height;
    Wish wish;
    bool operator==(const Kept&) const = default;
  };
  void Prepare(const PlanarPixels& from, const Wish& wish);
  static Columns MakeColumns(const Axis& axis);

  std::optional<Kept> kept_;
  Plane planes_[3];
  std::vector<const uint8_t*> rows_;
};

}  // namespace weir::image
