// A decoded frame, or a part of it, to a model's input.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "image/decode.h"
#include "image/exif.h"
#include "image/planar.h"
#include "image/resize.h"
#include "watch/tracker.h"

namespace weir::watch {

// Checks that any picture, of any size, can become the recipe's input. kUnsupported says what the recipe
// lacks.
Status CheckRecipe(const dataset::Recipe& recipe);

// How much smaller a JPEG of this width and height may be decoded (1, 2, 4 or 8) for an input of this recipe:
// to a half where that is large enough, further only where twice the size is left.
int ShrinkFor(const dataset::Recipe& recipe, int width, int height);

// Prepares inputs one after the other, keeping its buffers. One thread at a time.
class InputMaker {
 public:
  // The item of the input tensor for `region` of `frame`: resized, cropped, in the recipe's channels and
  // layout. A region of less than a pixel becomes one pixel. REQUIRES: CheckRecipe(recipe); a frame of 3
  // channels.
  Bytes Make(const image::Pixels& frame, const Box& region, const dataset::Recipe& recipe);
  Bytes Make(const image::PlanarPixels& frame, const Box& region, const dataset::Recipe& recipe);

 private:
  Bytes Place(const dataset::Recipe& recipe);
  image::Resizer resizer_;
  image::PlanarResizer planar_resizer_;
  image::Pixels resized_, placed_;
};

// Decodes JPEGs one after the other. One thread at a time.
class JpegFrames {
 public:
  // RGB pixels, upright by EXIF, at 1/shrink of the size, where `shrink_for` tells the shrink from the
  // upright width and height. kCorrupt for what is damaged or no JPEG; kUnsupported for a header that
  // declares more than `max_pixels`.
  template <typename ShrinkRule>
  Result<image::Pixels> Decode(std::span<const std::byte> jpeg, int64_t max_pixels, ShrinkRule shrink_for) {
    const image::PictureInfo info = TRY(ReadInfo(jpeg, max_pixels));
    const bool lies = image::TurnOf(info.orientation).transposed;
    const int width = lies ? info.height : info.width, height = lies ? info.width : info.height;
    return DecodeAt(jpeg, info, max_pixels, shrink_for(width, height));
  }

 private:
  static Result<image::PictureInfo> ReadInfo(std::span<const std::byte> jpeg, int64_t max_pixels);
  Result<image::Pixels> DecodeAt(std::span<const std::byte> jpeg, const image::PictureInfo& info,
                                 int64_t max_pixels, int shrink);
  image::Decoder decoder_;
};

}  // namespace weir::watch
