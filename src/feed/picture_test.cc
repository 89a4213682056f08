#include "feed/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "feed/kernels.h"
#include "image/exif.h"
#include "image/resize.h"
#include "image/testing/each_target.h"
#include "image/testing/pictures.h"

namespace weir::feed {
namespace {

using image::Pixels;
using image::testing::AsBytes;
using image::testing::MakePhoto;
using image::testing::OnEachTarget;

Pixels DecodeAll(std::string_view encoded) {
  image::Decoder decoder;
  const auto info = image::ReadPictureInfo(AsBytes(encoded), {});
  CHECK(info.has_value());
  Pixels pixels;
  CHECK(decoder.Decode(AsBytes(encoded), *info, {0, 0, info->width, info->height}, {}, pixels).has_value());
  return pixels;
}

Pixels ResizeBox(const Pixels& whole, const Box& box, int width, int height) {
  const image::Axis x = image::MakeBoxAxis(whole.width, box.x, box.width, width);
  const image::Axis y = image::MakeBoxAxis(whole.height, box.y, box.height, height);
  Pixels window{static_cast<int>(x.source_end() - x.source_begin()),
                static_cast<int>(y.source_end() - y.source_begin()),
                whole.channels,
                {}};
  for (int64_t row = y.source_begin(); row < y.source_end(); ++row) {
    const uint8_t* from = whole.data.data() + (row * whole.width + x.source_begin()) * whole.channels;
    window.data.insert(window.data.end(), from, from + static_cast<int64_t>(window.width) * whole.channels);
  }
  Pixels out;
  image::Resizer().Resize(window, x, y, out);
  return out;
}

constexpr Box kBoxes[] = {
    {0, 0, 301, 207}, {17, 30, 200, 100}, {100, 5, 40, 190}, {300, 206, 1, 1}, {3, 4, 32, 24}};

TEST(BoxAxis, OfAWholePictureIsThatOfAResize) {
  const image::Axis box = image::MakeBoxAxis(301, 0, 301, 99), whole = image::MakeAxis(301, 99, 0, 99);
  EXPECT_EQ(box.begins, whole.begins);
  EXPECT_EQ(box.weights, whole.weights);
}

TEST(BoxDecoder, DecodesThePartOfAWholePicture) {
  for (const bool grey : {false, true}) {
    const std::string jpeg = image::testing::WriteJpeg(
        MakePhoto(301, 207, 3, 1),
        {.colour = grey ? image::testing::JpegColour::kGrey : image::testing::JpegColour::kYcc});
    const Pixels whole = DecodeAll(jpeg);
    BoxDecoder decoder{image::DecodeOptions{}};
    const auto info = decoder.ReadInfo(AsBytes(jpeg));
    ASSERT_TRUE(info);
    for (const Box& box : kBoxes) {
      const auto part = decoder.Decode(AsBytes(jpeg), *info, dataset::Orientation::kExif, box, 32, 24);
      ASSERT_TRUE(part);
      EXPECT_EQ((*part)->data, ResizeBox(whole, box, 32, 24).data) << box.x;
    }
  }
}

TEST(BoxDecoder, TurnsAPictureUpright) {
  const Pixels photo = MakePhoto(301, 207, 3, 1);
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const std::string jpeg = image::testing::WriteJpeg(
        photo, {.exif = image::testing::ExifSegment(orientation, image::testing::ByteOrder::kLittle)});
    const Pixels stored = DecodeAll(jpeg);
    const bool transposed = orientation >= 5;
    Pixels upright{
        transposed ? stored.height : stored.width, transposed ? stored.width : stored.height, 3, {}};
    const image::Turn turn = image::TurnOf(orientation);
    for (int y = 0; y < upright.height; ++y) {
      for (int x = 0; x < upright.width; ++x) {
        int sx = transposed ? y : x, sy = transposed ? x : y;
        if (turn.mirror_x) sx = stored.width - 1 - sx;
        if (turn.mirror_y) sy = stored.height - 1 - sy;
        const uint8_t* from = stored.data.data() + (sy * stored.width + sx) * 3;
        upright.data.insert(upright.data.end(), from, from + 3);
      }
    }
    BoxDecoder decoder{image::DecodeOptions{}};
    const auto info = decoder.ReadInfo(AsBytes(jpeg));
    const Box box{20, 30, 150, 170};
    const auto part = decoder.Decode(AsBytes(jpeg), *info, dataset::Orientation::kExif, box, 40, 50);
    ASSERT_TRUE(part);
    const Pixels wanted = ResizeBox(upright, box, 40, 50);
    ASSERT_EQ((*part)->width, 40);
    ASSERT_EQ((*part)->data.size(), wanted.data.size());
    for (size_t i = 0; i < wanted.data.size(); ++i)
      ASSERT_NEAR((*part)->data[i], wanted.data[i], transposed ? 2 : 0) << orientation;
  }
}

AugmentOptions Plain(int width, int height) {
  AugmentOptions options;
  options.width = width;
  options.height = height;
  options.flip = 0;
  return options;
}

std::vector<uint8_t> MakeRow(const AugmentOptions& options, std::string_view encoded, uint64_t item = 1) {
  const ManualClock clock;
  PictureMaker maker(options, {}, clock);
  std::vector<uint8_t> row(options.sample_bytes());
  const auto made =
      maker.MakeEncoded(AsBytes(encoded), {1, 0, item}, reinterpret_cast<std::byte*>(row.data()));
  EXPECT_TRUE(made) << made.error().detail;
  return row;
}

TEST(PictureMaker, CropsAsDrawn) {
  const std::string jpeg = image::testing::WriteJpeg(MakePhoto(301, 207, 3, 1), {});
  const AugmentOptions options = Plain(32, 24);
  for (uint64_t item = 0; item < 20; ++item) {
    const Draws draws = Draw(options, 301, 207, {1, 0, item});
    EXPECT_EQ(MakeRow(options, jpeg, item), ResizeBox(DecodeAll(jpeg), draws.box, 32, 24).data);
  }
}

TEST(PictureMaker, FlipsEitherWay) {
  const std::string png_like = image::testing::WriteBmp(MakePhoto(35, 21, 3, 1));
  AugmentOptions options = Plain(35, 21);
  options.crop = CropRule::kNone;
  const auto straight = MakeRow(options, png_like);
  const auto pixel = [](const std::vector<uint8_t>& row, int x, int y) {
    return std::vector<uint8_t>(row.begin() + (y * 35 + x) * 3, row.begin() + (y * 35 + x) * 3 + 3);
  };
  options.flip = 1;
  const auto flipped = MakeRow(options, png_like);
  options.vertical_flip = 1;
  const auto both = MakeRow(options, png_like);
  for (int y = 0; y < 21; ++y) {
    for (int x = 0; x < 35; ++x) {
      ASSERT_EQ(pixel(flipped, 34 - x, y), pixel(straight, x, y));
      ASSERT_EQ(pixel(both, 34 - x, 20 - y), pixel(straight, x, y));
    }
  }
}

TEST(PictureMaker, GivesGreyPicturesThreeEqualChannels) {
  const std::string jpeg =
      image::testing::WriteJpeg(MakePhoto(60, 50, 3, 2), {.colour = image::testing::JpegColour::kGrey});
  for (const double flip : {0.0, 1.0}) {
    AugmentOptions options = Plain(32, 32);
    options.flip = flip;
    const auto row = MakeRow(options, jpeg);
    for (size_t i = 0; i < row.size(); i += 3) {
      ASSERT_EQ(row[i], row[i + 1]);
      ASSERT_EQ(row[i], row[i + 2]);
    }
    EXPECT_NE(row.front(), row.back());
  }
}

TEST(PictureMaker, NormalisesInEveryTypeAndLayout) {
  const std::string jpeg = image::testing::WriteJpeg(MakePhoto(60, 50, 3, 2), {});
  AugmentOptions options = Plain(17, 13);
  const auto pixels = MakeRow(options, jpeg);
  const size_t count = 17 * 13;
  for (const dataset::Layout layout : {dataset::Layout::kNhwc, dataset::Layout::kNchw}) {
    options.layout = layout;
    const auto place = [&](size_t pixel, size_t c) {
      return layout == dataset::Layout::kNchw ? c * count + pixel : pixel * 3 + c;
    };
    for (const ValueType type : {ValueType::kUint8, ValueType::kFloat16, ValueType::kFloat32}) {
      options.type = type;
      const auto row = MakeRow(options, jpeg);
      for (size_t i = 0; i < count; ++i) {
        for (size_t c = 0; c < 3; ++c) {
          const float wanted =
              (static_cast<float>(pixels[3 * i + c]) / 255.0f - static_cast<float>(options.mean[c])) /
              static_cast<float>(options.std[c]);
          if (type == ValueType::kUint8) {
            ASSERT_EQ(row[place(i, c)], pixels[3 * i + c]);
          } else if (type == ValueType::kFloat32) {
            float value = 0;
            std::memcpy(&value, &row[4 * place(i, c)], 4);
            ASSERT_EQ(value, wanted);
          } else {
            _Float16 value = 0;
            std::memcpy(&value, &row[2 * place(i, c)], 2);
            ASSERT_EQ(value, static_cast<_Float16>(wanted));
          }
        }
      }
    }
  }
}

TEST(PictureMaker, RotatesAroundTheCentre) {
  // A quarter turn counter-clockwise takes the pixel at (x, y) to (y, size - 1 - x).
  const Pixels photo = MakePhoto(32, 32, 3, 3);
  const std::string bmp = image::testing::WriteBmp(photo);
  AugmentOptions options = Plain(32, 32);
  options.crop = CropRule::kNone;
  options.rotation = 180;
  const auto row = MakeRow(options, bmp, 4);
  const double angle = Draw(options, 32, 32, {1, 0, 4}).angle, radians = angle * M_PI / 180;
  // Where the picture's own pixel (20, 12) went.
  const double right = 20.5 - 16, up = 16 - 12.5;
  const double x = std::cos(radians) * right - std::sin(radians) * up + 16 - 0.5;
  const double y = 16 - (std::sin(radians) * right + std::cos(radians) * up) - 0.5;
  const auto at = [&](int px, int py) { return row[(py * 32 + px) * 3]; };
  const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  int low = 255, high = 0;
  for (int dy = -1; dy <= 2; ++dy) {
    for (int dx = -1; dx <= 2; ++dx) {
      low = std::min<int>(low, at(left + dx, top + dy));
      high = std::max<int>(high, at(left + dx, top + dy));
    }
  }
  const int wanted = photo.data[(12 * 32 + 20) * 3];
  EXPECT_GE(wanted, low - 12) << angle;
  EXPECT_LE(wanted, high + 12) << angle;
}

TEST(PictureMaker, SaysWhyAPictureIsBad) {
  const ManualClock clock;
  const AugmentOptions random = Plain(32, 32);
  std::vector<std::byte> row(random.sample_bytes());
  PictureMaker maker(random, {}, clock);
  const std::string jpeg = image::testing::WriteJpeg(MakePhoto(60, 50, 3, 2), {});
  const auto cut = maker.MakeEncoded(AsBytes(jpeg).first(jpeg.size() / 2), {}, row.data());
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().reason, image::RejectReason::kDamaged);
  AugmentOptions none = random;
  none.crop = CropRule::kNone;
  const auto other = PictureMaker(none, {}, clock).MakeEncoded(AsBytes(jpeg), {}, row.data());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().reason, image::RejectReason::kWrongGeometry);
  EXPECT_EQ(other.error().detail, "60x50 pixels, and 32x32 are wanted without a crop");
}

TEST(PictureMaker, MakesTheSameOfARawRecord) {
  const Pixels photo = MakePhoto(64, 48, 3, 5);
  const std::string bmp = image::testing::WriteBmp(photo);
  const ManualClock clock;
  for (const CropRule crop : {CropRule::kRandomResized, CropRule::kNone}) {
    AugmentOptions options = Plain(crop == CropRule::kNone ? 64 : 20, crop == CropRule::kNone ? 48 : 30);
    options.crop = crop;
    options.flip = 0.5;
    PictureMaker maker(options, {}, clock);
    for (uint64_t item = 0; item < 4; ++item) {
      std::vector<uint8_t> row(options.sample_bytes());
      ASSERT_TRUE(maker.MakeRaw(std::as_bytes(std::span(photo.data)), {64, 48, 3}, {1, 0, item},
                                reinterpret_cast<std::byte*>(row.data())));
      EXPECT_EQ(row, MakeRow(options, bmp, item));
    }
  }
}

TEST(Kernels, GiveTheSameOnEveryProcessor) {
  const Pixels photo = MakePhoto(61, 3, 3, 7);
  const size_t count = 61 * 3;
  OnEachTarget([&] {
    std::vector<uint8_t> reversed(3 * count), grey(count), blended = photo.data, saturated = photo.data;
    ReverseRgb(photo.data.data(), count, reversed.data());
    Luma(photo.data.data(), count, grey.data());
    BlendLevel(blended.data(), blended.size(), 100, 1.7f);
    BlendGrey(saturated.data(), grey.data(), count, -0.3f);
    std::vector<uint8_t> planes(3 * count);
    ToPlanes(photo.data.data(), count, {planes.data(), planes.data() + count, planes.data() + 2 * count});
    for (size_t i = 0; i < count; ++i) {
      const uint8_t* rgb = &photo.data[3 * i];
      const uint32_t luma = (19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16;
      ASSERT_EQ(grey[i], luma);
      for (size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(reversed[3 * (count - 1 - i) + c], rgb[c]);
        ASSERT_EQ(planes[c * count + i], rgb[c]);
        const float mixed = 100.0f + 1.7f * static_cast<float>(rgb[c] - 100);
        ASSERT_EQ(blended[3 * i + c], static_cast<uint8_t>(std::clamp(mixed, 0.0f, 255.0f)));
        const float product = -0.3f * static_cast<float>(rgb[c] - static_cast<int>(luma));
        ASSERT_EQ(saturated[3 * i + c],
                  static_cast<uint8_t>(std::clamp(static_cast<float>(luma) + product, 0.0f, 255.0f)));
      }
    }
  });
}

TEST(Kernels, ShiftHueByAWholeTurnKeepsTheColour) {
  const Pixels photo = MakePhoto(40, 40, 3, 8);
  std::vector<uint8_t> once = photo.data;
  ShiftHue(once.data(), 1600, 0);
  for (size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(once[i], photo.data[i], 6);  // HSV has 8 bits
  uint8_t red[3] = {255, 0, 0};
  ShiftHue(red, 1, 85);  // a third of the circle
  EXPECT_EQ(red[1], 255);
  EXPECT_LT(red[0], 10);
}

TEST(PictureMaker, MakesTheSameOfKeptPixels) {
  const ManualClock clock;
  for (const CropRule crop : {CropRule::kRandomResized, CropRule::kCentre, CropRule::kNone}) {
    for (const bool grey : {false, true}) {
      AugmentOptions options = Plain(crop == CropRule::kNone ? 60 : 32, crop == CropRule::kNone ? 50 : 32);
      options.crop = crop;
      options.short_side = 40;
      options.flip = 0.5;
      options.jitter = {0.4, 0.4, 0.4, 0.1};
      const std::string jpeg = image::testing::WriteJpeg(
          MakePhoto(60, 50, 3, 2),
          {.colour = grey ? image::testing::JpegColour::kGrey : image::testing::JpegColour::kYcc});
      PictureMaker maker(options, {}, clock);
      const auto kept = maker.DecodeToKeep(AsBytes(jpeg));
      ASSERT_TRUE(kept);
      ASSERT_NE(*kept, nullptr);
      const Pixels pixels = **kept;
      for (uint64_t item = 0; item < 8; ++item) {
        std::vector<uint8_t> row(options.sample_bytes());
        ASSERT_TRUE(maker.MakeRaw(std::as_bytes(std::span(pixels.data)),
                                  {pixels.width, pixels.height, pixels.channels}, {1, 0, item},
                                  reinterpret_cast<std::byte*>(row.data())));
        EXPECT_EQ(row, MakeRow(options, jpeg, item)) << ToString(crop) << item;
      }
    }
  }
  const std::string turned = image::testing::WriteJpeg(
      MakePhoto(60, 50, 3, 2), {.exif = image::testing::ExifSegment(6, image::testing::ByteOrder::kLittle)});
  PictureMaker maker(Plain(32, 32), {}, clock);
  EXPECT_EQ(*maker.DecodeToKeep(AsBytes(turned)), nullptr);
}

// Adds a random level to every value.
class Lighten final : public PixelOperation {
 public:
  std::string Canonical() const override { return "lighten"; }
  void Apply(uint8_t* rgb, int width, int height, Chance& chance) const override {
    const auto more = static_cast<int>(chance.Integer(1, 50));
    for (int i = 0; i < 3 * width * height; ++i) rgb[i] = static_cast<uint8_t>(std::min(255, rgb[i] + more));
  }
};

TEST(PictureMaker, AppliesOperationsOfAProgramsOwn) {
  const std::string jpeg = image::testing::WriteJpeg(MakePhoto(60, 50, 3, 2), {});
  AugmentOptions options = Plain(32, 24);
  const auto plain = MakeRow(options, jpeg);
  const std::string before = Canonical(options);
  options.more = {std::make_shared<Lighten>()};
  EXPECT_NE(Canonical(options), before);
  const auto lighter = MakeRow(options, jpeg);
  Chance chance(1, 0, 1, Operation::kUser);
  const auto more = static_cast<int>(chance.Integer(1, 50));
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(lighter[i], std::min(255, plain[i] + more));
}

}  // namespace
}  // namespace weir::feed
