#include "feed/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "feed/kernels.h"
#include "image/exif.h"

namespace weir::feed {

struct PictureMaker::State {
  const AugmentOptions options;
  const Clock& clock;
  BoxDecoder decoder;
  std::optional<dataset::Preparer> preparer;  // CropRule::kCentre
  Normalisation normalisation;
  image::Pixels rgb, turned;
  std::vector<uint8_t> grey, cut;
  PlacedPicture placed;
  PictureTimes times;

  State(const AugmentOptions& augment, const image::DecodeOptions& decode, const Clock& time)
      : options(augment), clock(time), decoder(decode) {
    if (options.crop == CropRule::kCentre) {
      dataset::Geometry geometry;
      geometry.short_side = options.short_side;
      geometry.crop = dataset::Size{options.width, options.height};
      geometry.orientation = options.orientation;
      preparer.emplace(geometry, decode);
    }
    for (size_t c = 0; c < 3; ++c) {
      normalisation.mean[c] = static_cast<float>(options.mean[c]);
      normalisation.std[c] = static_cast<float>(options.std[c]);
    }
  }

  bool WritesInPlace() const {
    return options.type == ValueType::kUint8 && options.layout == dataset::Layout::kNhwc;
  }
  void Finish(const uint8_t* pixels, int channels, const DrawKey& key, std::byte* row);
  void PutFlipped(const uint8_t* pixels, int channels, const Draws& draws, uint8_t* out);
  void Rotate(uint8_t* pixels, double degrees);
  void Colour(uint8_t* pixels, const Draws& draws);
  void Convert(const uint8_t* pixels, std::byte* row) const;
};

PictureMaker::PictureMaker(const AugmentOptions& options, const image::DecodeOptions& decode,
                           const Clock& clock)
    : state_(std::make_unique<State>(options, decode, clock)) {}
PictureMaker::~PictureMaker() = default;

// Copies a picture of the output's size as RGB, flipped as drawn.
void PictureMaker::State::PutFlipped(const uint8_t* pixels, int channels, const Draws& draws, uint8_t* out) {
  const auto width = static_cast<size_t>(options.width), height = static_cast<size_t>(options.height);
  const size_t row_bytes = 3 * width;
  if (channels == 3 && !draws.flip && !draws.vertical_flip) {
    std::memcpy(out, pixels, row_bytes * height);
    return;
  }
  if (channels == 1) turned.data.resize(row_bytes);
  for (size_t y = 0; y < height; ++y) {
    const size_t from = draws.vertical_flip ? height - 1 - y : y;
    const uint8_t* line = pixels + from * width * static_cast<size_t>(channels);
    uint8_t* target = out + y * row_bytes;
    if (channels == 1) {
      GreyToRgb(line, width, draws.flip ? turned.data.data() : target);
      line = turned.data.data();
    }
    if (draws.flip) {
      ReverseRgb(line, width, target);
    } else if (channels == 3) {
      std::memcpy(target, line, row_bytes);
    }
  }
}

// Rotates counter-clockwise around the centre: each output pixel is the bilinear mean of the four pixels
// around its place in the source, in 16 bits of fraction; black outside.
void PictureMaker::State::Rotate(uint8_t* pixels, double degrees) {
  const int width = options.width, height = options.height;
  turned.data.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 0);
  const double radians = degrees * 3.14159265358979323846 / 180, cosine = std::cos(radians),
               sine = std::sin(radians);
  const double centre_x = width / 2.0, centre_y = height / 2.0;
  uint8_t* target = turned.data.data();
  for (int y = 0; y < height; ++y) {
    const double down = y + 0.5 - centre_y;
    for (int x = 0; x < width; ++x, target += 3) {
      const double right = x + 0.5 - centre_x;
      // Rows count downwards, so a counter-clockwise turn takes its pixels clockwise.
      const double from_x = cosine * right - sine * down + centre_x,
                   from_y = sine * right + cosine * down + centre_y;
      if (!(from_x >= 0 && from_x < width && from_y >= 0 && from_y < height)) continue;
      const auto fixed_x = static_cast<int64_t>(std::floor((from_x - 0.5) * 65536));
      const auto fixed_y = static_cast<int64_t>(std::floor((from_y - 0.5) * 65536));
      const int64_t left = std::max<int64_t>(fixed_x >> 16, 0), top = std::max<int64_t>(fixed_y >> 16, 0);
      const int64_t last_x = std::min<int64_t>((fixed_x >> 16) + 1, width - 1);
      const int64_t last_y = std::min<int64_t>((fixed_y >> 16) + 1, height - 1);
      const uint64_t share_x = static_cast<uint64_t>(fixed_x & 0xffff),
                     share_y = static_cast<uint64_t>(fixed_y & 0xffff);
      const uint8_t* rows[2] = {pixels + top * width * 3, pixels + last_y * width * 3};
      for (int c = 0; c < 3; ++c) {
        const auto mix = [&](const uint8_t* line) {
          return line[left * 3 + c] * (65536 - share_x) + line[last_x * 3 + c] * share_x;
        };
        const uint64_t sum = mix(rows[0]) * (65536 - share_y) + mix(rows[1]) * share_y;
        target[c] = static_cast<uint8_t>((sum + (uint64_t{1} << 31)) >> 32);
      }
    }
  }
  std::memcpy(pixels, turned.data.data(), turned.data.size());
}

// Applies the steps of torchvision's ColorJitter and RandomGrayscale, each as Pillow's ImageEnhance has it.
void PictureMaker::State::Colour(uint8_t* pixels, const Draws& draws) {
  const size_t count = static_cast<size_t>(options.width) * static_cast<size_t>(options.height);
  grey.resize(count);
  const JitterDraw& jitter = draws.jitter;
  if (options.jitter.any()) {
    for (const JitterDraw::Step step : jitter.order) {
      switch (step) {
        case JitterDraw::Step::kBrightness:
          if (options.jitter.brightness > 0)
            BlendLevel(pixels, 3 * count, 0, static_cast<float>(jitter.brightness));
          break;
        case JitterDraw::Step::kContrast: {
          if (options.jitter.contrast <= 0) break;
          Luma(pixels, count, grey.data());
          uint64_t sum = 0;
          for (const uint8_t level : grey) sum += level;
          const auto mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(count) + 0.5);
          BlendLevel(pixels, 3 * count, mean, static_cast<float>(jitter.contrast));
          break;
        }
        case JitterDraw::Step::kSaturation:
          if (options.jitter.saturation <= 0) break;
          Luma(pixels, count, grey.data());
          BlendGrey(pixels, grey.data(), count, static_cast<float>(jitter.saturation));
          break;
        case JitterDraw::Step::kHue:
          if (options.jitter.hue > 0) {
            ShiftHue(pixels, count, static_cast<uint8_t>(static_cast<int>(jitter.hue * 255)));
          }
          break;
      }
    }
  }
  if (draws.grayscale) {
    Luma(pixels, count, grey.data());
    GreyToRgb(grey.data(), count, pixels);
  }
}

// Writes uint8 NHWC pixels in the type and layout wanted.
void PictureMaker::State::Convert(const uint8_t* pixels, std::byte* row) const {
  const size_t count = static_cast<size_t>(options.width) * static_cast<size_t>(options.height);
  const bool planar = options.layout == dataset::Layout::kNchw;
  const size_t step = planar ? 1 : 3, apart = planar ? count : 1;
  if (options.type == ValueType::kFloat32) {
    auto* out = reinterpret_cast<float*>(row);
    ToFloat32(pixels, count, normalisation, {out, out + apart, out + 2 * apart}, step);
  } else if (options.type == ValueType::kFloat16) {
    auto* out = reinterpret_cast<uint16_t*>(row);
    ToFloat16(pixels, count, normalisation, {out, out + apart, out + 2 * apart}, step);
  } else {
    auto* out = reinterpret_cast<uint8_t*>(row);
    ToPlanes(pixels, count, {out, out + count, out + 2 * count});
  }
}

// Writes the row from pixels of the output's size, by the draws of `placed`.
void PictureMaker::State::Finish(const uint8_t* pixels, int channels, const DrawKey& key, std::byte* row) {
  const Draws& draws = placed.draws;
  uint8_t* out = reinterpret_cast<uint8_t*>(row);
  if (!WritesInPlace()) {
    rgb.data.resize(static_cast<size_t>(options.width) * static_cast<size_t>(options.height) * 3);
    out = rgb.data.data();
  }
  PutFlipped(pixels, channels, draws, out);
  if (options.rotation > 0) Rotate(out, draws.angle);
  if (options.jitter.any() || draws.grayscale) Colour(out, draws);
  uint32_t number = static_cast<uint32_t>(Operation::kUser);
  for (const auto& operation : options.more) {
    Chance chance(key.seed, key.epoch, key.item, static_cast<Operation>(number++));
    operation->Apply(out, options.width, options.height, chance);
  }
  if (!WritesInPlace()) Convert(out, row);
}

image::Accepted<void> PictureMaker::MakeEncoded(std::span<const std::byte> encoded, const DrawKey& key,
                                                std::byte* row) {
  State& s = *state_;
  const AugmentOptions& o = s.options;
  const Instant begin = s.clock.Now();
  const image::Pixels* pixels = nullptr;
  const image::PictureInfo info = TRY(s.decoder.ReadInfo(encoded));
  const bool transposed =
      o.orientation == dataset::Orientation::kExif && image::TurnOf(info.orientation).transposed;
  const int64_t width = transposed ? info.height : info.width, height = transposed ? info.width : info.height;
  s.placed = {width, height, o.crop == CropRule::kCentre, Draw(o, width, height, key)};
  if (o.crop == CropRule::kCentre) {
    pixels = TRY(s.preparer->Prepare(encoded));
  } else {
    if (o.crop == CropRule::kNone && (width != o.width || height != o.height)) {
      return std::unexpected(image::Reject{image::RejectReason::kWrongGeometry,
                                           fmt::format("{}x{} pixels, and {}x{} are wanted without a crop",
                                                       width, height, o.width, o.height)});
    }
    const Box box = o.crop == CropRule::kNone ? Box{0, 0, width, height} : s.placed.draws.box;
    pixels = TRY(s.decoder.Decode(encoded, info, o.orientation, box, o.width, o.height));
  }
  const Instant decoded = s.clock.Now();
  s.Finish(pixels->data.data(), pixels->channels, key, row);
  s.times.decode += decoded - begin;
  s.times.augment += s.clock.Now() - decoded;
  return {};
}

image::Accepted<void> PictureMaker::MakeRaw(std::span<const std::byte> pixels, const RawShape& shape,
                                            const DrawKey& key, std::byte* row) {
  State& s = *state_;
  const AugmentOptions& o = s.options;
  if (pixels.size() != shape.bytes()) {
    return std::unexpected(
        image::Reject{image::RejectReason::kDamaged,
                      fmt::format("its record has {} bytes, which is not {}x{} pixels of {} channels",
                                  pixels.size(), shape.width, shape.height, shape.channels)});
  }
  const Instant begin = s.clock.Now();
  s.placed = {shape.width, shape.height, false, Draw(o, shape.width, shape.height, key)};
  const auto* data = reinterpret_cast<const uint8_t*>(pixels.data());
  const bool fits = shape.width == o.width && shape.height == o.height;
  if (o.crop == CropRule::kRandomResized) {
    data = s.decoder.Resize(pixels, shape, s.placed.draws.box, o.width, o.height).data.data();
  } else if (!fits && o.crop == CropRule::kCentre) {
    // The centre of the record at its own size; OpenFeed refuses records that are smaller.
    const auto width = static_cast<size_t>(o.width), channels = static_cast<size_t>(shape.channels);
    const auto x = static_cast<size_t>((shape.width - o.width) / 2),
               y = static_cast<size_t>((shape.height - o.height) / 2);
    s.cut.resize(width * static_cast<size_t>(o.height) * channels);
    for (size_t line = 0; line < static_cast<size_t>(o.height); ++line) {
      std::memcpy(s.cut.data() + line * width * channels,
                  data + ((y + line) * static_cast<size_t>(shape.width) + x) * channels, width * channels);
    }
    data = s.cut.data();
  } else if (!fits) {
    return std::unexpected(
        image::Reject{image::RejectReason::kWrongGeometry,
                      fmt::format("records of {}x{} pixels, and {}x{} are wanted without a crop", shape.width,
                                  shape.height, o.width, o.height)});
  }
  const Instant resized = s.clock.Now();
  s.Finish(data, shape.channels, key, row);
  s.times.decode += resized - begin;
  s.times.augment += s.clock.Now() - resized;
  return {};
}

image::Accepted<const image::Pixels*> PictureMaker::DecodeToKeep(std::span<const std::byte> encoded) {
  State& s = *state_;
  const Instant begin = s.clock.Now();
  const image::PictureInfo info = TRY(s.decoder.ReadInfo(encoded));
  const bool turned = s.options.orientation == dataset::Orientation::kExif && info.orientation != 1;
  if (turned) return nullptr;
  const auto pixels = s.options.crop == CropRule::kCentre ? s.preparer->Prepare(encoded)
                                                          : s.decoder.DecodeWhole(encoded, info);
  s.times.decode += s.clock.Now() - begin;
  return pixels;
}

const PlacedPicture& PictureMaker::placed() const { return state_->placed; }

PictureTimes PictureMaker::TakeTimes() { return std::exchange(state_->times, {}); }

}  // namespace weir::feed
