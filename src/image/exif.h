// The one thing wanted of EXIF: which way up the picture is.
#pragma once

#include <cstdint>
#include <span>

namespace weir::image {

// `tiff` is an EXIF block from its byte order mark ("II*" or "MM*") on. 1 where there is no orientation, it
// is not one of 1 to 8, or the block is garbage.
int ExifOrientation(std::span<const uint8_t> tiff);

}  // namespace weir::image
