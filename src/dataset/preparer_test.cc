#include "dataset/preparer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "image/encode.h"
#include "image/resize.h"
#include "image/testing/pictures.h"

namespace weir::dataset {
namespace {

using image::testing::AsBytes;
using image::testing::MakePhoto;

uint8_t At(const image::Pixels& pixels, int x, int y, int c) {
  return pixels.data[(static_cast<size_t>(y) * pixels.width + x) * pixels.channels + c];
}

// Turns a stored picture upright: EXIF says where its first row and first column are to be seen.
image::Pixels Upright(const image::Pixels& stored, int orientation) {
  const bool turned = orientation >= 5;
  image::Pixels upright{
      turned ? stored.height : stored.width, turned ? stored.width : stored.height, stored.channels, {}};
  for (int y = 0; y < upright.height; ++y) {
    for (int x = 0; x < upright.width; ++x) {
      const int right = upright.width - 1 - x, bottom = upright.height - 1 - y;
      const int row_of[] = {0, y,     y,     bottom, bottom,
                            x, right, right, x};  // 1: first row on top ... 8: on the left
      const int column_of[] = {0, x, right,  right, x,
                               y, y, bottom, bottom};  // 1: first column on the left ...
      for (int c = 0; c < stored.channels; ++c) {
        upright.data.push_back(At(stored, column_of[orientation], row_of[orientation], c));
      }
    }
  }
  return upright;
}

image::Pixels DecodeWhole(std::string_view encoded) {
  const image::PictureInfo info = image::ReadPictureInfo(AsBytes(encoded), {}).value();
  image::Pixels pixels;
  EXPECT_TRUE(image::Decoder().Decode(AsBytes(encoded), info, {0, 0, info.width, info.height}, {}, pixels));
  return pixels;
}

image::Pixels ResizeWhole(const image::Pixels& source, int width, int height) {
  image::Pixels out;
  image::Resizer().Resize(source, image::MakeAxis(source.width, width, 0, width),
                          image::MakeAxis(source.height, height, 0, height), out);
  return out;
}

int LargestDifference(const image::Pixels& a, const image::Pixels& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.channels, b.channels);
  int largest = a.data.size() == b.data.size() ? 0 : 256;
  for (size_t i = 0; i < std::min(a.data.size(), b.data.size()); ++i) {
    largest = std::max(largest, std::abs(a.data[i] - b.data[i]));
  }
  return largest;
}

image::Pixels Prepare(std::string_view encoded, const Geometry& geometry) {
  Preparer preparer(geometry, {});
  const auto pixels = preparer.Prepare(AsBytes(encoded));
  EXPECT_TRUE(pixels) << (pixels ? "" : pixels.error().detail);
  return pixels ? **pixels : image::Pixels{};
}

TEST(Preparer, ObeysEachOrientationAsIfThePictureHadBeenTurnedFirst) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string jpeg = image::testing::WriteJpeg(
        MakePhoto(121, 80, 3, 3),
        {.luma = {1, 1},
         .exif = image::testing::ExifSegment(orientation, image::testing::ByteOrder::kLittle)});
    const image::Pixels upright = Upright(DecodeWhole(jpeg), orientation);
    const image::Pixels& resized = ResizeWhole(upright, 50, 70);
    EXPECT_LE(LargestDifference(Prepare(jpeg, {.resize = Size{50, 70}}), resized), 1) << orientation;
    EXPECT_LE(LargestDifference(Prepare(jpeg, {}), upright), 0) << orientation;
    // An odd crop, so that a crop of the stored picture would lie a pixel off.
    const image::Pixels cropped = Prepare(jpeg, {.resize = Size{50, 70}, .crop = Size{31, 33}});
    for (int y = 0; y < 33; ++y) {
      for (int x = 0; x < 31; ++x)
        ASSERT_NEAR(At(cropped, x, y, 1), At(resized, x + 10, y + 18, 1), 1) << orientation;
    }
    const image::Pixels ignored = Prepare(jpeg, {.orientation = Orientation::kIgnore});
    EXPECT_LE(LargestDifference(ignored, DecodeWhole(jpeg)), 0);
  }
}

TEST(Preparer, ShortSideIsExactAndTheLongSideRoundedDown) {
  const std::string wide = image::EncodePng(MakePhoto(100, 30, 3, 1)).value();
  const std::string tall = image::EncodePng(MakePhoto(30, 100, 3, 1)).value();
  const image::Pixels from_wide = Prepare(wide, {.short_side = 20});
  EXPECT_EQ(from_wide.width, 66);  // 66.67
  EXPECT_EQ(from_wide.height, 20);
  const image::Pixels from_tall = Prepare(tall, {.short_side = 20});
  EXPECT_EQ(from_tall.width, 20);
  EXPECT_EQ(from_tall.height, 66);
}

TEST(Preparer, CropOffsetsRoundHalvesToTheEven) {
  for (const auto& [width, crop, offset] :
       {std::array{9, 4, 2}, std::array{11, 4, 4}, std::array{10, 4, 3}}) {
    const image::Pixels photo = MakePhoto(width, 4, 3, 1);
    const image::Pixels cropped = Prepare(image::EncodePng(photo).value(), {.crop = Size{crop, 4}});
    EXPECT_EQ(At(cropped, 0, 2, 0), At(photo, offset, 2, 0));
    EXPECT_EQ(At(cropped, crop - 1, 2, 2), At(photo, offset + crop - 1, 2, 2));
  }
}

TEST(Preparer, ACropLargerThanThePictureIsBlackAround) {
  const image::Pixels photo = MakePhoto(5, 6, 3, 1);
  const image::Pixels cropped = Prepare(image::EncodePng(photo).value(), {.crop = Size{10, 4}});
  ASSERT_EQ(cropped.width, 10);
  ASSERT_EQ(cropped.height, 4);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 10; ++x) {
      const bool inside = x >= 2 && x < 7;  // (5 - 10) / 2 = -2.5, to the even -2
      EXPECT_EQ(At(cropped, x, y, 1), inside ? At(photo, x - 2, y + 1, 1) : 0) << x << "," << y;
    }
  }
}

TEST(Preparer, GivesTheChannelsAskedFor) {
  const image::Pixels photo = MakePhoto(8, 8, 3, 1);
  const std::string png = image::EncodePng(photo).value();
  const image::Pixels bgr = Prepare(png, {.channels = Channels::kBgr});
  const image::Pixels grey = Prepare(png, {.channels = Channels::kGrey});
  ASSERT_EQ(grey.channels, 1);
  for (int x = 0; x < 8; ++x) {
    for (int c = 0; c < 3; ++c) EXPECT_EQ(At(bgr, x, 3, c), At(photo, x, 3, 2 - c));
    const double luma = 0.299 * At(photo, x, 3, 0) + 0.587 * At(photo, x, 3, 1) + 0.114 * At(photo, x, 3, 2);
    EXPECT_NEAR(At(grey, x, 3, 0), luma, 0.51);
  }
  const image::Pixels grey_photo = MakePhoto(8, 8, 1, 2);
  const image::Pixels rgb = Prepare(image::EncodePng(grey_photo).value(), {});
  ASSERT_EQ(rgb.channels, 3);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(At(rgb, 5, 6, c), At(grey_photo, 5, 6, 0));
}

TEST(Preparer, TakesPicturesOfManySizesAndFormatsInTurn) {
  Preparer preparer({.short_side = 32, .crop = Size{28, 28}}, {});
  for (int i = 0; i < 30; ++i) {
    const image::Pixels photo =
        MakePhoto(10 + 37 * (i % 7), 90 - 11 * (i % 5), i % 3 == 0 ? 1 : 3, static_cast<uint64_t>(i));
    const std::string file =
        i % 2 == 0 ? image::EncodePng(photo).value() : image::EncodeJpeg(photo, {}).value();
    const auto pixels = preparer.Prepare(AsBytes(file));
    ASSERT_TRUE(pixels) << pixels.error().detail;
    EXPECT_EQ((*pixels)->data.size(), 28u * 28 * 3);
    EXPECT_EQ(LargestDifference(**pixels, Prepare(file, {.short_side = 32, .crop = Size{28, 28}})), 0);
    EXPECT_FALSE(preparer.Prepare(AsBytes(std::string_view(file).substr(0, file.size() / 2))));
  }
}

TEST(Preparer, ComputesOnlyWhatTheCropNeeds) {
  // The short side to 256 makes 5,120,000x256 of this: 3.9 GB.
  const std::string png = image::EncodePng(MakePhoto(20000, 1, 3, 1)).value();
  const image::Pixels cropped = Prepare(png, {.short_side = 256, .crop = Size{224, 224}});
  EXPECT_EQ(cropped.data.size(), 224u * 224 * 3);
  const auto whole = Preparer({.short_side = 256}, {}).Prepare(AsBytes(png));
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().reason, image::RejectReason::kTooManyPixels);
}

TEST(Preparer, SeveralGeometriesGetWhatEachGetsAlone) {
  const std::vector<Geometry> geometries = {{.short_side = 32, .crop = Size{28, 20}},
                                            {.resize = Size{17, 90}, .channels = Channels::kGrey},
                                            {.crop = Size{10, 12}},
                                            {.crop = Size{12, 400}, .channels = Channels::kBgr},
                                            {.short_side = 8, .orientation = Orientation::kIgnore}};
  Preparer preparer = Preparer::OfAll(geometries, {});
  for (const int orientation : {1, 6, 8}) {
    const std::string jpeg = image::testing::WriteJpeg(
        MakePhoto(121, 80, 3, 3),
        {.luma = {2, 2},
         .exif = image::testing::ExifSegment(orientation, image::testing::ByteOrder::kLittle)});
    const auto results = preparer.PrepareAll(AsBytes(jpeg));
    ASSERT_EQ(results.size(), geometries.size());
    for (size_t i = 0; i < results.size(); ++i) {
      ASSERT_TRUE(results[i]);
      EXPECT_EQ(LargestDifference(**results[i], Prepare(jpeg, geometries[i])), 0) << i << ", " << orientation;
    }
    for (const auto& cut : preparer.PrepareAll(AsBytes(std::string_view(jpeg).substr(0, jpeg.size() / 2))))
      EXPECT_EQ(cut.error().reason, image::RejectReason::kDamaged);
  }
}

// JPEGs are resized strip by strip while they are decoded.
TEST(Preparer, OfAJpegGivesWhatTheWholePictureResizedGives) {
  const std::vector<Geometry> geometries = {{.short_side = 32, .crop = Size{28, 20}},
                                            {.resize = Size{17, 90}, .channels = Channels::kGrey},
                                            {.resize = Size{200, 7}, .crop = Size{60, 3}},
                                            {.resize = Size{400, 300}}};
  Preparer all = Preparer::OfAll(geometries, {});
  for (const auto& luma : {std::array{1, 1}, std::array{2, 1}, std::array{2, 2}}) {
    for (const Size& size : {Size{121, 80}, Size{67, 301}, Size{640, 41}, Size{5, 9}}) {
      const std::string jpeg = image::testing::WriteJpeg(MakePhoto(size.width, size.height, 3, 3),
                                                         {.luma = luma, .restart_rows = 1});
      const std::string_view cut = std::string_view(jpeg).substr(0, jpeg.size() * 3 / 4);
      for (const auto& result : all.PrepareAll(AsBytes(cut))) EXPECT_FALSE(result);
      const image::Pixels decoded = DecodeWhole(jpeg);
      const auto results = all.PrepareAll(AsBytes(jpeg));
      for (size_t i = 0; i < geometries.size(); ++i) {
        ASSERT_TRUE(results[i]);
        const image::Pixels whole = Prepare(image::EncodePng(decoded).value(), geometries[i]);
        EXPECT_EQ(LargestDifference(**results[i], whole), 0) << i << ", " << size.width << ", " << luma[0];
        EXPECT_EQ(LargestDifference(Prepare(jpeg, geometries[i]), whole), 0) << i << ", " << size.width;
      }
    }
  }
}

// Whether it is asked for alone or beside others: what is wrong with the picture itself comes first.
TEST(Preparer, ARejectDoesNotDependOnTheOtherGeometries) {
  const Geometry huge{.short_side = 16000}, small{.short_side = 8};
  const std::string good = image::testing::WriteJpeg(MakePhoto(40, 30, 3, 1), {});
  const std::string cut = good.substr(0, good.size() / 2);
  for (const auto& [encoded, reason] : {std::pair(good, image::RejectReason::kTooManyPixels),
                                        std::pair(cut, image::RejectReason::kDamaged)}) {
    Preparer both = Preparer::OfAll({huge, small}, {});
    const auto alone = Preparer(huge, {}).Prepare(AsBytes(encoded));
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().reason, reason);
    EXPECT_EQ(both.PrepareAll(AsBytes(encoded))[0].error().reason, reason);
  }
}

// The bar of the option: within two levels on average. A photo's neighbours are alike; so are this one's.
TEST(Preparer, ShrinkingStaysNearTheWholeDecode) {
  image::Pixels photo{1000, 778, 3, {}};
  for (int y = 0; y < photo.height; ++y) {
    for (int x = 0; x < photo.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave = std::sin(x * 0.031 * (c + 1)) + std::cos(y * 0.023 + x * 0.2) * 0.4;
        photo.data.push_back(static_cast<uint8_t>(128 + 60 * wave));
      }
    }
  }
  const std::string jpeg = image::EncodeJpeg(photo, {}).value();
  for (const int side : {300, 190, 90, 40}) {
    const Geometry geometry{.short_side = side, .crop = Size{side - 8, side - 8}};
    Preparer preparer = Preparer::OfAll({geometry}, {.shrink = true});
    const auto shrunk = preparer.Prepare(AsBytes(jpeg));
    ASSERT_TRUE(shrunk);
    const image::Pixels whole = Prepare(jpeg, geometry);
    ASSERT_EQ((*shrunk)->data.size(), whole.data.size());
    double sum = 0;
    for (size_t i = 0; i < whole.data.size(); ++i) sum += std::abs(whole.data[i] - (*shrunk)->data[i]);
    EXPECT_LT(sum / static_cast<double>(whole.data.size()), 2) << side;
    const bool is_shrunk = LargestDifference(whole, **shrunk) > 0;
    EXPECT_EQ(is_shrunk, side <= 389) << side;  // at least twice too large
    EXPECT_FALSE(preparer.Prepare(AsBytes(std::string_view(jpeg).substr(0, jpeg.size() / 2))));
  }
  Preparer large = Preparer::OfAll({Geometry{.short_side = 400}}, {.shrink = true});
  EXPECT_EQ(LargestDifference(**large.Prepare(AsBytes(jpeg)), Prepare(jpeg, {.short_side = 400})), 0);
}

TEST(Preparer, ShrinkingObeysOrientations) {
  const image::Pixels photo = MakePhoto(160, 121, 3, 3);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string jpeg = image::testing::WriteJpeg(
        photo, {.luma = {1, 1},
                .exif = image::testing::ExifSegment(orientation, image::testing::ByteOrder::kLittle)});
    const Geometry geometry{.resize = Size{20, 20}};
    Preparer preparer = Preparer::OfAll({geometry}, {.shrink = true});
    const image::Pixels shrunk = **preparer.Prepare(AsBytes(jpeg));
    const image::Pixels whole = Prepare(jpeg, geometry);
    double sum = 0;
    for (size_t i = 0; i < whole.data.size(); ++i) sum += std::abs(whole.data[i] - shrunk.data[i]);
    EXPECT_LT(sum / static_cast<double>(whole.data.size()), 2) << orientation;
  }
}

TEST(Preparer, HoldsItsLimitOnPixels) {
  const std::string png = image::EncodePng(MakePhoto(40, 30, 3, 1)).value();
  const auto pixels = Preparer({.short_side = 8}, {.max_pixels = 1000}).Prepare(AsBytes(png));
  ASSERT_FALSE(pixels);
  EXPECT_EQ(pixels.error().reason, image::RejectReason::kTooManyPixels);
}

}  // namespace
}  // namespace weir::dataset
