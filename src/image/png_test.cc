#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "image/encode.h"
#include "image/testing/decoding.h"

namespace weir::image {
namespace {

using testing::AsBytes;
using testing::Cut;
using testing::DecodeWhole;
using testing::ExpectDecodesTo;
using testing::ExpectEveryCutIsFound;
using testing::Text;

TEST(Png, RgbAndGreyComeBackAsTheyWent) {
  for (const int channels : {1, 3}) {
    const Pixels photo = testing::MakePhoto(37, 29, channels, 4);
    ExpectDecodesTo(*EncodePng(photo), photo);
    ExpectDecodesTo(testing::WritePng(37, 29, Text(photo.data),
                                      {.colour_type = channels == 1 ? 0 : 2, .interlaced = true}),
                    photo);
  }
}

TEST(Png, GreyOfFewBitsIsScaledToEight) {
  for (const int depth : {1, 2, 4}) {
    for (const bool interlaced : {false, true}) {
      const int width = 19;
      const int height = 11;
      const int most = (1 << depth) - 1;
      std::mt19937 random(depth);
      Pixels wanted{width, height, 1, {}};
      std::string rows;
      for (int y = 0; y < height; ++y) {
        std::string row((width * depth + 7) / 8, '\0');
        for (int x = 0; x < width; ++x) {
          const int value = static_cast<int>(random() % (most + 1));
          row[x * depth / 8] = static_cast<char>(row[x * depth / 8] | value << (8 - depth - x * depth % 8));
          wanted.data.push_back(static_cast<uint8_t>(value * 255 / most));
        }
        rows += row;
      }
      ExpectDecodesTo(testing::WritePng(width, height, rows,
                                        {.depth = depth, .colour_type = 0, .interlaced = interlaced}),
                      wanted);
    }
  }
}

TEST(Png, SixteenBitsAreScaledNotCut) {
  std::string rows;
  Pixels wanted{64, 16, 1, {}};
  for (int i = 0; i < 64 * 16; ++i) {
    const int value = i * 64 + 63;
    rows += static_cast<char>(value >> 8);
    rows += static_cast<char>(value);
    wanted.data.push_back(static_cast<uint8_t>((value * 255 + 32767) / 65535));
  }
  ExpectDecodesTo(testing::WritePng(64, 16, rows, {.depth = 16, .colour_type = 0}), wanted);
}

TEST(Png, AlphaIsPutOnBlack) {
  for (const bool interlaced : {false, true}) {
    for (const int colours : {1, 3}) {
      const Pixels photo = testing::MakePhoto(33, 21, colours, 8);
      Pixels wanted = photo;
      std::string rows;
      for (size_t i = 0; i < photo.data.size() / colours; ++i) {
        const int alpha = static_cast<int>(i * 7 % 256);
        for (int c = 0; c < colours; ++c) {
          const int value = photo.data[i * colours + c];
          rows += static_cast<char>(value);
          wanted.data[i * colours + c] = static_cast<uint8_t>((value * alpha + 127) / 255);
        }
        rows += static_cast<char>(alpha);
      }
      ExpectDecodesTo(
          testing::WritePng(33, 21, rows, {.colour_type = colours == 1 ? 4 : 6, .interlaced = interlaced}),
          wanted);
    }
  }
}

TEST(Png, APaletteGivesColoursAndItsTransparentEntriesBlack) {
  const std::vector<uint8_t> palette = {10, 20, 30, 200, 100, 50, 255, 255, 255, 1, 2, 3};
  std::string rows;
  Pixels wanted{16, 16, 3, {}};
  for (int i = 0; i < 256; ++i) {
    const int index = (i * 5 + i / 16) % 4;
    rows += static_cast<char>(index);
    for (int c = 0; c < 3; ++c) wanted.data.push_back(index == 1 ? 0 : palette[index * 3 + c]);
  }
  ExpectDecodesTo(
      testing::WritePng(16, 16, rows,
                        {.colour_type = 3, .transparent = std::string("\xFF\0\xFF", 3), .palette = palette}),
      wanted);
}

TEST(Png, ATransparentColourIsBlack) {
  Pixels wanted = testing::MakePhoto(16, 16, 3, 8);
  const std::string key = {0, static_cast<char>(wanted.data[0]), 0, static_cast<char>(wanted.data[1]),
                           0, static_cast<char>(wanted.data[2])};
  const std::string encoded =
      testing::WritePng(16, 16, Text(wanted.data), {.colour_type = 2, .transparent = key});
  wanted.data[0] = wanted.data[1] = wanted.data[2] = 0;
  ExpectDecodesTo(encoded, wanted);
}

TEST(Png, EveryCutAndEveryWrongByteIsFound) {
  const Pixels photo = testing::MakePhoto(24, 24, 3, 2);
  for (const bool interlaced : {false, true}) {
    const std::string good = testing::WritePng(
        24, 24, Text(photo.data),
        {.interlaced = interlaced, .exif = testing::ExifBlock(1, testing::ByteOrder::kBig)});
    ExpectEveryCutIsFound(good);
    for (size_t i = 8; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      EXPECT_FALSE(DecodeWhole(bad)) << i;
    }
    EXPECT_TRUE(DecodeWhole(good + "trailing garbage"));
  }
}

TEST(Png, ToleratedDamageShowsTheRowsBeforeIt) {
  const Pixels photo = testing::MakePhoto(64, 64, 3, 2);
  const std::string good = *EncodePng(photo);
  const auto shown =
      DecodeWhole(std::string_view(good).substr(0, good.size() * 2 / 3), {.tolerate_damage = true});
  ASSERT_TRUE(shown);
  EXPECT_EQ(Cut(*shown, {0, 0, 64, 10}).data, Cut(photo, {0, 0, 64, 10}).data);
  EXPECT_EQ(shown->data.back(), 0);
}

TEST(Png, ItsExifSaysWhichWayIsUp) {
  const Pixels photo = testing::MakePhoto(8, 8, 3, 2);
  const auto info = ReadPictureInfo(
      AsBytes(testing::WritePng(8, 8, Text(photo.data),
                                {.exif = testing::ExifBlock(8, testing::ByteOrder::kLittle)})),
      {});
  ASSERT_TRUE(info);
  EXPECT_EQ(info->orientation, 8);
}

}  // namespace
}  // namespace weir::image
