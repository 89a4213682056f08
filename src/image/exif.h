// The one thing wanted of EXIF and XMP: which way up the picture is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::image {

// `exif` is an EXIF block from its byte order mark ("II*" or "MM*") on, or with the prefix that JPEG has
// before it. 1 where the orientation is not one of 1 to 8; nullopt where there is none, or the block is
// garbage.
std::optional<int> FindExifOrientation(std::span<const uint8_t> exif);
// The same, and 1 where there is none.
int ExifOrientation(std::span<const uint8_t> exif);

// The orientation that an XMP packet tells of; as FindExifOrientation. It counts where EXIF has none.
std::optional<int> FindXmpOrientation(std::string_view xmp);

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
