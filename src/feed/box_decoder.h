// Part of a picture, decoded and resized.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include "dataset/recipe.h"
#include "feed/augment.h"
#include "image/decode.h"

namespace weir::feed {

// Pixels of one size, as raw records have them: uint8, interleaved.
struct RawShape {
  int width = 0, height = 0, channels = 3;
  // The most there is for sides below 0, and for more than that: no memory has so many.
  size_t bytes() const {
    constexpr size_t kMost = std::numeric_limits<size_t>::max();
    size_t product = 1;
    for (const int side : {width, height, channels}) {
      if (side < 0 || __builtin_mul_overflow(product, static_cast<size_t>(side), &product)) return kMost;
    }
    return product;
  }
  bool operator==(const RawShape&) const = default;
};

// The boxes of pictures at the output's size. Keeps a decoder and buffers. One thread at a time.
class BoxDecoder {
 public:
  explicit BoxDecoder(const image::DecodeOptions& options);
  ~BoxDecoder();
  BoxDecoder(BoxDecoder&&) noexcept;

  // Returns what the header says of the picture.
  image::Accepted<image::PictureInfo> ReadInfo(std::span<const std::byte> encoded) const;

  // Decodes the box of an upright picture and resizes it to `width` by `height` pixels. The pixels are those
  // of Pillow's resize((width, height), BILINEAR, box=box) to the bit for a picture stored upright, and
  // within 2 levels for one that EXIF turns. Only the part of the picture that the box needs is decoded. The
  // result has 1 or 3 channels and is valid until the next call. REQUIRES: `info` is ReadInfo's of the same
  // bytes; the box lies within the upright picture.
  image::Accepted<const image::Pixels*> Decode(std::span<const std::byte> encoded,
                                               const image::PictureInfo& info,
                                               dataset::Orientation orientation, const Box& box, int width,
                                               int height);

  // Decodes a picture as it is stored, whole. The result has 1 or 3 channels and is valid until the next call
  // of this or of Decode. REQUIRES: as Decode.
  image::Accepted<const image::Pixels*> DecodeWhole(std::span<const std::byte> encoded,
                                                    const image::PictureInfo& info);

  // The same of pixels that lie in memory.
  const image::Pixels& Resize(std::span<const std::byte> pixels, const RawShape& shape, const Box& box,
                              int width, int height);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::feed
