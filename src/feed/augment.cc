#include "feed/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace weir::feed {

size_t BytesOf(ValueType type) {
  if (type == ValueType::kFloat32) return 4;
  return type == ValueType::kFloat16 ? 2 : 1;
}

namespace {

constexpr int kMostSide = 16384;

Status CheckRange(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return {};  // false for NaN
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} is {}: give {} to {}", name, value, low, high));
}

}  // namespace

Status CheckAugment(const AugmentOptions& o) {
  TRY_STATUS(CheckRange("width", o.width, 1, kMostSide));
  TRY_STATUS(CheckRange("height", o.height, 1, kMostSide));
  TRY_STATUS(CheckRange("the smallest area", o.area_low, 1e-9, 1));
  TRY_STATUS(CheckRange("the largest area", o.area_high, o.area_low, 1));
  TRY_STATUS(CheckRange("the smallest aspect", o.aspect_low, 1e-3, 1e3));
  TRY_STATUS(CheckRange("the largest aspect", o.aspect_high, o.aspect_low, 1e3));
  TRY_STATUS(CheckRange("short_side", o.short_side, 1, kMostSide));
  TRY_STATUS(CheckRange("flip", o.flip, 0, 1));
  TRY_STATUS(CheckRange("vertical_flip", o.vertical_flip, 0, 1));
  TRY_STATUS(CheckRange("rotation", o.rotation, 0, 180));
  TRY_STATUS(CheckRange("brightness", o.jitter.brightness, 0, 100));
  TRY_STATUS(CheckRange("contrast", o.jitter.contrast, 0, 100));
  TRY_STATUS(CheckRange("saturation", o.jitter.saturation, 0, 100));
  TRY_STATUS(CheckRange("hue", o.jitter.hue, 0, 0.5));
  TRY_STATUS(CheckRange("grayscale", o.grayscale, 0, 1));
  TRY_STATUS(CheckRange("mask_fill", o.mask_fill, 0, 255));
  for (size_t c = 0; c < 3; ++c) {
    TRY_STATUS(CheckRange("mean", o.mean[c], -1e6, 1e6));
    TRY_STATUS(CheckRange("std", o.std[c], 1e-6, 1e6));
  }
  return {};
}

std::string Canonical(const AugmentOptions& o) {
  std::string text = fmt::format("augment 1 {}x{} {}", o.width, o.height, ToString(o.crop));
  if (o.crop == CropRule::kRandomResized)
    text += fmt::format(" {} {} {} {}", o.area_low, o.area_high, o.aspect_low, o.aspect_high);
  if (o.crop == CropRule::kCentre) text += fmt::format(" {}", o.short_side);
  text += fmt::format(" flip {} {} rotate {} jitter {} {} {} {} grey {} {}", o.flip, o.vertical_flip,
                      o.rotation, o.jitter.brightness, o.jitter.contrast, o.jitter.saturation, o.jitter.hue,
                      o.grayscale, o.orientation == dataset::Orientation::kExif ? "exif" : "ignore");
  text += fmt::format(" {} {}", ToString(o.type), o.layout == dataset::Layout::kNchw ? "nchw" : "nhwc");
  if (o.type != ValueType::kUint8) {
    for (size_t c = 0; c < 3; ++c) text += fmt::format(" {} {}", o.mean[c], o.std[c]);
  }
  if (o.mask_fill != 0) text += fmt::format(" mask {}", o.mask_fill);
  for (const auto& operation : o.more) text += fmt::format(" more {}", operation->Canonical());
  return text;
}

Box DrawBox(const AugmentOptions& options, int64_t width, int64_t height, Chance& chance) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const double log_low = std::log(options.aspect_low), log_high = std::log(options.aspect_high);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * chance.Uniform(options.area_low, options.area_high);
    const double aspect = std::exp(chance.Uniform(log_low, log_high));
    const auto w =
        static_cast<int64_t>(std::nearbyint(std::sqrt(wanted * aspect)));  // halves to even, as Python
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(wanted / aspect)));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const int64_t y = chance.Integer(0, height - h), x = chance.Integer(0, width - w);
    return {x, y, w, h};
  }
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  int64_t w = width, h = height;
  if (aspect < options.aspect_low) {
    h = static_cast<int64_t>(std::nearbyint(static_cast<double>(w) / options.aspect_low));
  } else if (aspect > options.aspect_high) {
    w = static_cast<int64_t>(std::nearbyint(static_cast<double>(h) * options.aspect_high));
  }
  // A picture of 65,535 x 1 pixels gives a box of one pixel, and not of none.
  w = std::clamp<int64_t>(w, 1, width);
  h = std::clamp<int64_t>(h, 1, height);
  return {(width - w) / 2, (height - h) / 2, w, h};
}

JitterDraw DrawJitter(const JitterOptions& options, Chance& chance) {
  JitterDraw draw;
  for (size_t i = draw.order.size(); i > 1; --i) {
    std::swap(draw.order[i - 1],
              draw.order[static_cast<size_t>(chance.Integer(0, static_cast<int64_t>(i) - 1))]);
  }
  const auto factor = [&](double range) { return chance.Uniform(std::max(0.0, 1 - range), 1 + range); };
  // Each is drawn, wanted or not, so that one never changes the draws of the next.
  draw.brightness = factor(options.brightness);
  draw.contrast = factor(options.contrast);
  draw.saturation = factor(options.saturation);
  draw.hue = chance.Uniform(-options.hue, options.hue);
  return draw;
}

Draws Draw(const AugmentOptions& options, int64_t width, int64_t height, const DrawKey& key) {
  const auto chance = [&](Operation operation) { return Chance(key.seed, key.epoch, key.item, operation); };
  const auto happens = [&](double probability, Operation operation) {
    return probability > 0 && chance(operation).Uniform() < probability;
  };
  Draws draws;
  if (options.crop == CropRule::kRandomResized) {
    Chance numbers = chance(Operation::kCrop);
    draws.box = DrawBox(options, width, height, numbers);
  }
  draws.flip = happens(options.flip, Operation::kFlip);
  draws.vertical_flip = happens(options.vertical_flip, Operation::kVerticalFlip);
  draws.grayscale = happens(options.grayscale, Operation::kGrayscale);
  if (options.rotation > 0)
    draws.angle = chance(Operation::kRotation).Uniform(-options.rotation, options.rotation);
  if (options.jitter.any()) {
    Chance numbers = chance(Operation::kJitter);
    draws.jitter = DrawJitter(options.jitter, numbers);
  }
  return draws;
}

}  // namespace weir::feed
