#include "feed/mask_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"
#include "feed/picture.h"
#include "image/testing/pictures.h"

namespace weir::feed {
namespace {

using image::testing::AsBytes;
using ::testing::HasSubstr;

constexpr int kWidth = 60, kHeight = 40;

// A palette picture whose index at (x, y) is x + 3 * y, modulo 200.
std::string IndexedPng(int width = kWidth, int height = kHeight) {
  std::string rows;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) rows += static_cast<char>((x + 3 * y) % 200);
  image::testing::PngShape shape{.colour_type = 3};
  for (int i = 0; i < 200; ++i) shape.palette.insert(shape.palette.end(), {uint8_t(255 - i), uint8_t(i), 9});
  return image::testing::WritePng(width, height, rows, shape);
}

AugmentOptions Options(CropRule crop, int width, int height) {
  AugmentOptions options;
  options.crop = crop;
  options.width = width;
  options.height = height;
  options.flip = 0;
  options.mask_fill = 255;
  return options;
}

std::vector<int> Make(const AugmentOptions& options, const PlacedPicture& picture, const std::string& png) {
  MaskMaker maker(options, {});
  std::vector<std::byte> row(options.mask_bytes());
  const auto made = maker.Make(AsBytes(png), picture, row.data());
  EXPECT_TRUE(made) << made.error().detail;
  std::vector<int> numbers;
  for (const std::byte number : row) numbers.push_back(static_cast<int>(number));
  return numbers;
}

int At(int x, int y) { return (x + 3 * y) % 200; }

TEST(MaskMaker, TakesTheNearestPixelOfTheBox) {
  PlacedPicture picture{kWidth, kHeight, false, {.box = {10, 5, 20, 30}}};
  const AugmentOptions options = Options(CropRule::kRandomResized, 10, 10);
  const std::vector<int> mask = Make(options, picture, IndexedPng());
  for (int y = 0; y < 10; ++y)
    for (int x = 0; x < 10; ++x)
      EXPECT_EQ(mask[static_cast<size_t>(y * 10 + x)], At(10 + 2 * x + 1, 5 + 3 * y + 1));
  picture.draws.flip = picture.draws.vertical_flip = true;
  std::vector<int> turned = Make(options, picture, IndexedPng());
  std::ranges::reverse(turned);
  EXPECT_EQ(turned, mask);
}

TEST(MaskMaker, CutsTheCentreAndFillsWhatIsOutside) {
  AugmentOptions options = Options(CropRule::kCentre, 50, 20);
  options.short_side = 20;  // 30 x 20 once resized: ten columns on each side are outside
  const PlacedPicture picture{kWidth, kHeight, true, {}};
  const std::vector<int> mask = Make(options, picture, IndexedPng());
  EXPECT_EQ(mask[9], 255);
  EXPECT_EQ(mask[10], At(1, 1));
  EXPECT_EQ(mask[39], At(59, 1));
  EXPECT_EQ(mask[40], 255);
}

TEST(MaskMaker, RotatesAsItsPicture) {
  const PlacedPicture quarter{kWidth, kWidth, false, {.angle = 90}};
  AugmentOptions options = Options(CropRule::kNone, kWidth, kWidth);
  options.rotation = 90;
  const std::vector<int> mask = Make(options, quarter, IndexedPng(kWidth, kWidth));
  for (int y = 1; y < kWidth - 1; ++y)
    for (int x = 1; x < kWidth - 1; ++x)
      ASSERT_EQ(mask[static_cast<size_t>(y * kWidth + x)], At(kWidth - 1 - y, x)) << x << " " << y;
  PlacedPicture little = quarter;
  little.draws.angle = 30;
  EXPECT_EQ(Make(options, little, IndexedPng(kWidth, kWidth))[0], 255);
}

// Picture and mask stay together under every operation of geometry.
TEST(MaskMaker, StaysWithItsPicture) {
  std::string grey, rgb;
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) {
      const char level = (x < 32) == (y < 20) ? '\xf0' : '\x10';
      grey += level;
      rgb += std::string(3, level);
    }
  }
  const std::string picture = image::testing::WritePng(64, 64, rgb, {.colour_type = 2});
  const std::string mask = image::testing::WritePng(64, 64, grey, {.colour_type = 0});
  const SteadyClock clock;
  AugmentOptions options = Options(CropRule::kRandomResized, 48, 48);
  options.area_low = 0.5;
  options.flip = options.vertical_flip = 0.5;
  options.rotation = 20;
  options.mask_fill = 0;
  PictureMaker maker(options, {}, clock);
  MaskMaker masks(options, {});
  for (uint64_t sample = 0; sample < 20; ++sample) {
    std::vector<std::byte> row(options.sample_bytes()), numbers(options.mask_bytes());
    ASSERT_TRUE(maker.MakeEncoded(AsBytes(picture), {1, 0, sample}, row.data()));
    ASSERT_TRUE(masks.Make(AsBytes(mask), maker.placed(), numbers.data()));
    int apart = 0;
    for (size_t i = 0; i < numbers.size(); ++i)
      apart += std::abs(static_cast<int>(row[3 * i]) - static_cast<int>(numbers[i])) > 140 ? 1 : 0;
    EXPECT_LE(apart, 30) << sample;  // of 2,304 pixels: on the edges
  }
}

TEST(MaskMaker, RefusesWhatIsNoMaskOfThePicture) {
  MaskMaker maker(Options(CropRule::kNone, kWidth, kHeight), {});
  std::vector<std::byte> row(kWidth * kHeight);
  const auto reject = [&](const std::string& png, int width) {
    const auto made = maker.Make(AsBytes(png), {width, kHeight, false, {}}, row.data());
    EXPECT_FALSE(made);
    return made ? image::Reject{} : made.error();
  };
  EXPECT_EQ(reject(IndexedPng(), kWidth + 1).reason, image::RejectReason::kWrongGeometry);
  EXPECT_THAT(reject(image::testing::WritePng(kWidth, kHeight, std::string(kWidth * kHeight * 3, 'a'),
                                              {.colour_type = 2}),
                     kWidth)
                  .detail,
              HasSubstr("three channels"));
  EXPECT_EQ(reject(IndexedPng().substr(0, 200), kWidth).reason, image::RejectReason::kDamaged);
}

}  // namespace
}  // namespace weir::feed
