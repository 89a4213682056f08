// The mask of a picture, with the picture's geometry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "feed/augment.h"
#include "image/decode.h"

namespace weir::feed {

// Makes masks: one number for each pixel of the output, such as its class. A mask takes the same box, flips
// and rotation as its picture, and each output pixel takes the nearest of the mask's pixels (Pillow's
// NEAREST), so no new number arises. Keeps a decoder and buffers. One thread at a time.
class MaskMaker {
 public:
  // REQUIRES: CheckAugment accepts the options.
  MaskMaker(const AugmentOptions& options, const image::DecodeOptions& decode);

  // Writes width * height bytes at `row`: the palette's indices or the grey levels of the mask, and
  // options.mask_fill where nothing of it lies. Rejects what the decoder rejects, kUnsupported for a mask of
  // three channels, and kWrongGeometry for one of another size than its picture has, upright.
  image::Accepted<void> Make(std::span<const std::byte> encoded, const PlacedPicture& picture,
                             std::byte* row);

 private:
  void PlaceColumnsAndRows(const PlacedPicture& picture);
  void Rotate(double degrees, uint8_t* out);

  const AugmentOptions options_;
  image::DecodeOptions decode_;
  image::Decoder decoder_;
  image::Pixels pixels_;
  std::vector<int64_t> columns_, rows_;  // of the mask, by output column and row; -1: none
  std::vector<uint8_t> straight_;
};

}  // namespace weir::feed
