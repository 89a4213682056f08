#include "watch/picture_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "dataset/preparer.h"
#include "watch/picture_turn.h"

namespace weir::watch {
namespace {

dataset::Size ResizedSize(const dataset::Geometry& geometry, int64_t width, int64_t height) {
  if (geometry.resize) return *geometry.resize;
  const int64_t side = *geometry.short_side;
  return width <= height ? dataset::Size{static_cast<int>(side), static_cast<int>(height * side / width)}
                         : dataset::Size{static_cast<int>(width * side / height), static_cast<int>(side)};
}

// The rectangle in whole pixels, at least one.
image::Window ToWindow(const Box& box, int width, int height) {
  const auto cut = [](float share, int side) {
    return static_cast<int>(std::lround(std::clamp(share, 0.0F, 1.0F) * static_cast<float>(side)));
  };
  image::Window w{.x = std::min(cut(box.x0, width), width - 1),
                  .y = std::min(cut(box.y0, height), height - 1)};
  w.width = std::max(1, cut(box.x1, width) - w.x);
  w.height = std::max(1, cut(box.y1, height) - w.y);
  return w;
}

Error Words(const image::Reject& reject) {
  const bool large = reject.reason == image::RejectReason::kTooManyPixels ||
                     reject.reason == image::RejectReason::kUnsupported;
  return {large ? ErrorCode::kUnsupported : ErrorCode::kCorrupt,
          fmt::format("{}{}{}", image::ToString(reject.reason), reject.detail.empty() ? "" : ": ",
                      reject.detail)};
}

}  // namespace

Status CheckRecipe(const dataset::Recipe& recipe) {
  const dataset::Geometry& g = recipe.geometry;
  if (!g.OutputSize() || (!g.resize && !g.short_side))
    return Fail(ErrorCode::kUnsupported,
                "the recipe does not resize frames of any size to one: add resize to it");
  const int least_width = g.resize ? g.resize->width : *g.short_side,
            least_height = g.resize ? g.resize->height : *g.short_side;
  if (g.crop && (g.crop->width > least_width || g.crop->height > least_height))
    return Fail(ErrorCode::kUnsupported, "the recipe's crop is larger than the resized frame may be");
  return {};
}

int ShrinkFor(const dataset::Recipe& recipe, int width, int height) {
  const dataset::Size wanted = ResizedSize(recipe.geometry, width, height);
  for (const int shrink : {8, 4, 2}) {
    const int64_t margin = shrink > 2 ? 2 : 1;
    if (width >= margin * shrink * wanted.width && height >= margin * shrink * wanted.height) return shrink;
  }
  return 1;
}

Bytes InputMaker::Make(const image::Pixels& frame, const Box& region, const dataset::Recipe& recipe) {
  const image::Window window = ToWindow(region, frame.width, frame.height);
  const dataset::Size resized = ResizedSize(recipe.geometry, window.width, window.height);
  const dataset::Size out = *recipe.geometry.OutputSize();
  const auto axis = [](int source, int target, int shown) {
    return image::MakeAxis(source, target, dataset::CentreOffset(target, shown), shown);
  };
  const image::Axis x = axis(window.width, resized.width, out.width),
                    y = axis(window.height, resized.height, out.height);
  resizer_.Begin(x, y, frame.channels, resized_);
  const size_t step = static_cast<size_t>(frame.width) * frame.channels;
  const uint8_t* const first = frame.data.data() + static_cast<size_t>(window.y + y.source_begin()) * step +
                               static_cast<size_t>(window.x + x.source_begin()) * frame.channels;
  resizer_.Add({first, step, frame.data.data() + frame.data.size(), frame.channels}, y.source_begin(),
               y.source_end() - y.source_begin());
  return Place(recipe);
}

Bytes InputMaker::Make(const image::PlanarPixels& frame, const Box& region, const dataset::Recipe& recipe) {
  const image::Window window = ToWindow(region, frame.width, frame.height);
  const dataset::Size resized = ResizedSize(recipe.geometry, window.width, window.height);
  const dataset::Size out = *recipe.geometry.OutputSize();
  planar_resizer_.Resize(
      frame,
      {.part = window,
       .width = resized.width,
       .height = resized.height,
       .shown = {static_cast<int>(dataset::CentreOffset(resized.width, out.width)),
                 static_cast<int>(dataset::CentreOffset(resized.height, out.height)), out.width, out.height}},
      resized_);
  return Place(recipe);
}

// The resized pixels in the recipe's channels and layout.
Bytes InputMaker::Place(const dataset::Recipe& recipe) {
  const dataset::Size out = *recipe.geometry.OutputSize();
  const image::Pixels* shown = &resized_;
  if (recipe.geometry.channels != dataset::Channels::kRgb) {
    const bool grey = recipe.geometry.channels == dataset::Channels::kGrey;
    placed_.width = resized_.width;
    placed_.height = resized_.height;
    placed_.channels = grey ? 1 : 3;
    placed_.data.resize(static_cast<size_t>(out.width) * out.height * placed_.channels);
    const uint8_t* from = resized_.data.data();
    for (uint8_t* to = placed_.data.data(); to != placed_.data.data() + placed_.data.size();
         to += placed_.channels, from += 3) {
      if (grey) {  // ITU-R BT.601-2 luma, as Pillow's convert("L")
        *to = static_cast<uint8_t>((19595U * from[0] + 38470U * from[1] + 7471U * from[2] + 0x8000U) >> 16);
      } else {
        to[0] = from[2];
        to[1] = from[1];
        to[2] = from[0];
      }
    }
    shown = &placed_;
  }
  Bytes item = Bytes::AllocateUninitialized(dataset::InputBytes(recipe, out));
  dataset::WriteInput(recipe, *shown, item.mutable_data());
  return item;
}

Result<image::PictureInfo> JpegFrames::ReadInfo(std::span<const std::byte> jpeg, int64_t max_pixels) {
  const auto info = image::ReadPictureInfo(jpeg, {.max_pixels = max_pixels});
  if (!info) return std::unexpected(Words(info.error()));
  if (info->format != image::PictureFormat::kJpeg) return Fail(ErrorCode::kCorrupt, "not a JPEG");
  return *info;
}

Result<image::Pixels> JpegFrames::DecodeAt(std::span<const std::byte> jpeg, const image::PictureInfo& info,
                                           int64_t max_pixels, int shrink) {
  image::Pixels pixels;
  const image::Window all{0, 0, image::ShrunkSide(info.width, shrink),
                          image::ShrunkSide(info.height, shrink)};
  const auto decoded = decoder_.Decode(jpeg, info, all, {.max_pixels = max_pixels, .shrink = shrink}, pixels);
  if (!decoded) return std::unexpected(Words(decoded.error()));
  if (info.orientation > 1) pixels = Turned(pixels, image::TurnOf(info.orientation));
  if (pixels.channels == 3) return pixels;
  image::Pixels rgb{.width = pixels.width, .height = pixels.height, .channels = 3};
  rgb.data.resize(pixels.data.size() * 3);
  for (size_t i = 0; i < pixels.data.size(); ++i)
    std::fill_n(rgb.data.begin() + static_cast<ptrdiff_t>(i * 3), 3, pixels.data[i]);
  return rgb;
}

}  // namespace weir::watch
