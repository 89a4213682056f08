#include <gtest/gtest.h>

#include <string>

#include "image/testing/decoding.h"

namespace weir::image {
namespace {

using testing::AsBytes;
using testing::ExpectDecodesTo;
using testing::ExpectEveryCutIsFound;
using testing::ReasonFor;
using testing::Text;

TEST(Tiff, RgbComesBackFromStripsTilesAndPlanes) {
  const Pixels photo = testing::MakePhoto(53, 47, 3, 4);
  for (const int compression : {1, 5, 8, 32773}) {  // none, LZW, deflate, PackBits
    for (const int tile : {0, 16}) {
      for (const bool planar : {false, true}) {
        SCOPED_TRACE(::testing::Message() << compression << ' ' << tile << ' ' << planar);
        ExpectDecodesTo(testing::WriteTiff(53, 47, Text(photo.data),
                                           {.compression = compression, .tile = tile, .planar = planar}),
                        photo);
      }
    }
  }
}

TEST(Tiff, StripsOfAnyHeightGiveTheSame) {
  const Pixels photo = testing::MakePhoto(31, 40, 3, 4);
  for (const int rows : {1, 3, 7, 40, 1000}) {
    ExpectDecodesTo(testing::WriteTiff(31, 40, Text(photo.data), {.compression = 5, .rows_per_strip = rows}),
                    photo);
  }
}

TEST(Tiff, GreyKeepsOneChannelAndWhiteMayBeZero) {
  const Pixels photo = testing::MakePhoto(31, 33, 1, 4);
  ExpectDecodesTo(testing::WriteTiff(31, 33, Text(photo.data), {.samples = 1, .photometric = 1}), photo);
  Pixels negative = photo;
  for (uint8_t& value : negative.data) value = static_cast<uint8_t>(255 - value);
  ExpectDecodesTo(testing::WriteTiff(31, 33, Text(photo.data), {.samples = 1, .photometric = 0}), negative);
}

TEST(Tiff, SixteenBitsAreScaled) {
  std::string samples;
  Pixels wanted{64, 16, 1, {}};
  for (int i = 0; i < 64 * 16; ++i) {
    const auto value = static_cast<uint16_t>(i * 64 + 63);
    samples.append(reinterpret_cast<const char*>(&value), 2);
    wanted.data.push_back(static_cast<uint8_t>((value * 255 + 32767) / 65535));
  }
  ExpectDecodesTo(testing::WriteTiff(64, 16, samples, {.bits = 16, .samples = 1, .photometric = 1}), wanted,
                  1);
}

TEST(Tiff, PalettesAndAlphaAreUnderstood) {
  const Pixels photo = testing::MakePhoto(20, 20, 1, 4);
  Pixels coloured{20, 20, 3, {}};
  for (const int i : photo.data) {
    for (const int value : {i, 255 - i, i ^ 0x55}) coloured.data.push_back(static_cast<uint8_t>(value));
  }
  ExpectDecodesTo(testing::WriteTiff(20, 20, Text(photo.data), {.samples = 1, .photometric = 3}), coloured);

  const Pixels rgb = testing::MakePhoto(20, 20, 3, 5);
  Pixels wanted = rgb;
  std::string samples;
  for (int i = 0; i < 400; ++i) {
    for (int c = 0; c < 3; ++c) {
      samples += static_cast<char>(rgb.data[i * 3 + c]);
      wanted.data[i * 3 + c] = static_cast<uint8_t>((rgb.data[i * 3 + c] * (i % 256) + 127) / 255);
    }
    samples += static_cast<char>(i % 256);
  }
  ExpectDecodesTo(testing::WriteTiff(20, 20, samples, {.samples = 4}), wanted, 1);
}

TEST(Tiff, TheTagSaysWhichWayIsUpAndPixelsStayAsStored) {
  const Pixels photo = testing::MakePhoto(21, 13, 3, 4);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string encoded = testing::WriteTiff(21, 13, Text(photo.data), {.orientation = orientation});
    const auto info = ReadPictureInfo(AsBytes(encoded), {});
    ASSERT_TRUE(info);
    EXPECT_EQ(info->orientation, orientation);
    ExpectDecodesTo(encoded, photo);
  }
}

TEST(Tiff, EveryCutIsFound) {
  const Pixels photo = testing::MakePhoto(24, 24, 3, 2);
  for (const int compression : {1, 5, 8}) {
    ExpectEveryCutIsFound(testing::WriteTiff(24, 24, Text(photo.data), {.compression = compression}));
  }
}

TEST(Tiff, AStripLargerThanMemoryAllowsIsRefused) {
  std::string encoded =
      testing::WriteTiff(9, 9, Text(testing::MakePhoto(9, 9, 3, 1).data), {.compression = 5});
  for (const char tag : {'\x00', '\x01', '\x16'}) {  // width, height, rows per strip: little-endian shorts
    const size_t at = encoded.find(std::string{tag, '\x01', 3, 0, 1, 0, 0, 0});
    ASSERT_NE(at, encoded.npos);
    encoded.replace(at + 8, 2, "\x28\x23");  // 9000
  }
  EXPECT_EQ(ReasonFor(encoded), RejectReason::kTooManyPixels);
}

}  // namespace
}  // namespace weir::image
