// The one thing wanted of EXIF: which way up the picture is.
#pragma once

#include <cstdint>
#include <span>

namespace weir::image {

// `tiff` is an EXIF block from its byte order mark ("II*" or "MM*") on. 1 where there is no orientation, it
// is not one of 1 to 8, or the block is garbage.
int ExifOrientation(std::span<const uint8_t> tiff);

// How a stored picture lies: upright pixel (x, y) is the stored (x, y), or (y, x) where transposed, counted
// from the other end where mirrored.
struct Turn {
  bool transposed = false;
  bool mirror_x = false, mirror_y = false;  // along stored rows, along stored columns
};
// By EXIF orientation 1 to 8 (CIPA DC-008, tag 0x0112). REQUIRES: one of them, or 0 for none.
constexpr Turn TurnOf(int orientation) {
  constexpr Turn kTurns[9] = {{false, false, false}, {false, false, false}, {false, true, false},
                              {false, true, true},   {false, false, true},  {true, false, false},
                              {true, false, true},   {true, true, true},    {true, true, false}};
  return kTurns[orientation];
}

}  // namespace weir::image
