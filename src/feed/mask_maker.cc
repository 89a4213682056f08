#include "feed/mask_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weir::feed {
namespace {

// The columns of Pillow's resize(..., NEAREST, box): the step is added up as ImagingScaleAffine does.
void PlaceBox(int64_t begin, int64_t extent, int64_t source, std::vector<int64_t>& places) {
  const double step = static_cast<double>(extent) / static_cast<double>(places.size());
  double at = static_cast<double>(begin) + step * 0.5;
  for (int64_t& place : places) {
    place = std::clamp<int64_t>(static_cast<int64_t>(at), 0, source - 1);
    at += step;
  }
}

// The columns of a resize to `resized` and a cut of its centre.
void PlaceCentre(int64_t source, int64_t resized, std::vector<int64_t>& places) {
  const auto offset =
      static_cast<int64_t>(std::nearbyint(static_cast<double>(resized - std::ssize(places)) / 2));
  const double step = static_cast<double>(source) / static_cast<double>(resized);
  for (int64_t i = 0; i < std::ssize(places); ++i) {
    const int64_t at = i + offset;
    places[static_cast<size_t>(i)] =
        at < 0 || at >= resized
            ? -1
            : std::min(static_cast<int64_t>((static_cast<double>(at) + 0.5) * step), source - 1);
  }
}

}  // namespace

MaskMaker::MaskMaker(const AugmentOptions& options, const image::DecodeOptions& decode)
    : options_(options), decode_(decode) {
  decode_.shrink = 1;
  decode_.keep_numbers = true;
  columns_.resize(static_cast<size_t>(options.width));
  rows_.resize(static_cast<size_t>(options.height));
}

void MaskMaker::PlaceColumnsAndRows(const PlacedPicture& picture) {
  const int64_t width = picture.width, height = picture.height;
  if (options_.crop == CropRule::kRandomResized) {
    const Box& box = picture.draws.box;
    PlaceBox(box.x, box.width, width, columns_);
    PlaceBox(box.y, box.height, height, rows_);
  } else if (picture.resizes) {
    const int64_t side = options_.short_side;
    PlaceCentre(width, width <= height ? side : width * side / height, columns_);
    PlaceCentre(height, width <= height ? height * side / width : side, rows_);
  } else {
    PlaceCentre(width, width, columns_);
    PlaceCentre(height, height, rows_);
  }
  if (picture.draws.flip) std::ranges::reverse(columns_);
  if (picture.draws.vertical_flip) std::ranges::reverse(rows_);
}

// As PictureMaker rotates, but each output pixel takes the one pixel in which its place lies.
void MaskMaker::Rotate(double degrees, uint8_t* out) {
  const int width = options_.width, height = options_.height;
  const double radians = degrees * 3.14159265358979323846 / 180, cosine = std::cos(radians),
               sine = std::sin(radians);
  const double centre_x = width / 2.0, centre_y = height / 2.0;
  for (int y = 0; y < height; ++y) {
    const double down = y + 0.5 - centre_y;
    for (int x = 0; x < width; ++x, ++out) {
      const double right = x + 0.5 - centre_x;
      const double from_x = cosine * right - sine * down + centre_x,
                   from_y = sine * right + cosine * down + centre_y;
      const bool inside = from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
      *out = inside ? straight_[static_cast<size_t>(from_y) * static_cast<size_t>(width) +
                                static_cast<size_t>(from_x)]
                    : static_cast<uint8_t>(options_.mask_fill);
    }
  }
}

image::Accepted<void> MaskMaker::Make(std::span<const std::byte> encoded, const PlacedPicture& picture,
                                      std::byte* row) {
  const image::PictureInfo info = TRY(image::ReadPictureInfo(encoded, decode_));
  if (info.width != picture.width || info.height != picture.height) {
    return std::unexpected(
        image::Reject{image::RejectReason::kWrongGeometry,
                      fmt::format("the mask has {}x{} pixels, and its picture, upright, {}x{}", info.width,
                                  info.height, picture.width, picture.height)});
  }
  TRY_STATUS(decoder_.Decode(encoded, info, {0, 0, info.width, info.height}, decode_, pixels_));
  if (pixels_.channels != 1) {
    return std::unexpected(image::Reject{image::RejectReason::kUnsupported,
                                         "the mask has three channels: a palette or grey levels are wanted"});
  }
  PlaceColumnsAndRows(picture);
  const auto width = static_cast<size_t>(options_.width), height = static_cast<size_t>(options_.height);
  const auto fill = static_cast<uint8_t>(options_.mask_fill);
  uint8_t* out = reinterpret_cast<uint8_t*>(row);
  const bool rotates = options_.rotation > 0;
  if (rotates) {
    straight_.resize(width * height);
    out = straight_.data();
  }
  for (size_t y = 0; y < height; ++y) {
    const uint8_t* line =
        rows_[y] < 0 ? nullptr : pixels_.data.data() + rows_[y] * static_cast<int64_t>(pixels_.width);
    for (size_t x = 0; x < width; ++x)
      out[y * width + x] = line == nullptr || columns_[x] < 0 ? fill : line[columns_[x]];
  }
  if (rotates) Rotate(picture.draws.angle, reinterpret_cast<uint8_t*>(row));
  return {};
}

}  // namespace weir::feed
