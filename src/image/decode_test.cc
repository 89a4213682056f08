// Behaviour that all formats share, and the small formats.
#include "image/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "image/encode.h"
#include "image/exif.h"
#include "image/testing/decoding.h"

namespace weir::image {
namespace {

using testing::AsBytes;
using testing::DecodeWhole;
using testing::ExpectDecodesTo;
using testing::ExpectEveryCutIsFound;
using testing::ReasonFor;
using testing::Text;

TEST(Sniff, TheContentDecidesTheFormat) {
  const Pixels photo = testing::MakePhoto(9, 7, 3, 1);
  EXPECT_EQ(SniffFormat(AsBytes(testing::WriteJpeg(photo, {}))), PictureFormat::kJpeg);
  EXPECT_EQ(SniffFormat(AsBytes(*EncodePng(photo)).first(16)), PictureFormat::kPng);
  EXPECT_EQ(SniffFormat(AsBytes(testing::WriteBmp(photo)).first(16)), PictureFormat::kBmp);
  EXPECT_EQ(SniffFormat(AsBytes(testing::WriteWebp(photo, {})).first(16)), PictureFormat::kWebp);
  EXPECT_EQ(SniffFormat(AsBytes(testing::WriteTiff(9, 7, Text(photo.data), {})).first(16)),
            PictureFormat::kTiff);
  EXPECT_EQ(SniffFormat(AsBytes("GIF89a")), PictureFormat::kGif);
  for (const char* text :
       {"", "B", "BMW is a maker of cars", "<!DOCTYPE html>", "RIFF....WAVEfmt ", "GIF88a", "II*"}) {
    EXPECT_EQ(SniffFormat(AsBytes(text)), std::nullopt) << text;
  }
}

TEST(Limits, DeclaredPixelsAreHeldAgainstTheLimitBeforeAnythingElse) {
  const Pixels photo = testing::MakePhoto(40, 30, 3, 1);
  const DecodeOptions enough{.max_pixels = 1200};
  const DecodeOptions less{.max_pixels = 1199};
  const std::string gif = testing::WriteGif(40, 30, std::vector<uint8_t>(12), {});
  for (const std::string& encoded :
       {testing::WriteJpeg(photo, {}), *EncodePng(photo), testing::WriteBmp(photo),
        testing::WriteWebp(photo, {}), testing::WriteTiff(40, 30, Text(photo.data), {})}) {
    EXPECT_TRUE(DecodeWhole(encoded, enough));
    EXPECT_EQ(ReasonFor(encoded, less), RejectReason::kTooManyPixels);
  }
  EXPECT_EQ(ReasonFor(gif, less), RejectReason::kTooManyPixels);
}

TEST(Limits, SizesWhoseProductOverflowsAreRefused) {
  std::string png = *EncodePng(testing::MakePhoto(4, 4, 3, 1));
  png.replace(16, 8, "\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF");
  EXPECT_EQ(ReasonFor(png), RejectReason::kTooManyPixels);
  png.replace(16, 8, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  EXPECT_EQ(ReasonFor(png, {.max_pixels = std::numeric_limits<int64_t>::max()}),
            RejectReason::kTooManyPixels);
  std::string bmp = testing::WriteBmp(testing::MakePhoto(4, 4, 3, 1));
  bmp.replace(18, 8, std::string("\xFF\xFF\xFF\x7F\0\0\0\x80", 8));
  EXPECT_EQ(ReasonFor(bmp, {.max_pixels = std::numeric_limits<int64_t>::max()}),
            RejectReason::kTooManyPixels);
}

TEST(Decoder, BytesAfterAPictureAreNoDamage) {
  const Pixels photo = testing::MakePhoto(21, 13, 3, 1);
  for (const std::string& encoded : {testing::WriteBmp(photo), testing::WriteWebp(photo, {}),
                                     testing::WriteTiff(21, 13, Text(photo.data), {})}) {
    const auto decoded = DecodeWhole(encoded + std::string(500, '\x5A'));
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_EQ(decoded->data, photo.data);
  }
}

TEST(Limits, NothingAndTextAreNoPictures) {
  EXPECT_EQ(ReasonFor(""), RejectReason::kEmpty);
  EXPECT_EQ(ReasonFor("<!DOCTYPE html><title>404</title>"), RejectReason::kNotAPicture);
}

TEST(Xmp, TellsTheOrientation) {
  EXPECT_EQ(FindXmpOrientation(R"(<rdf:Description tiff:Orientation="6"/>)"), 6);
  EXPECT_EQ(FindXmpOrientation("<tiff:Orientation>3</tiff:Orientation>"), 3);
  EXPECT_EQ(FindXmpOrientation("tiff:Orientation='8'"), 8);
  EXPECT_EQ(FindXmpOrientation("tiff:Orientation=\"9\""), 1);
  for (const char* none :
       {"", "tiff:Orientation", "tiff:Orientation=", "tiff:Orientation=\"", "tiff:Orientation>x"})
    EXPECT_EQ(FindXmpOrientation(none), std::nullopt) << none;
}

TEST(Exif, GarbageIsUpright) {
  const std::string good = testing::ExifBlock(6, testing::ByteOrder::kBig);
  const auto orientation = [](std::string_view block) {
    return ExifOrientation({reinterpret_cast<const uint8_t*>(block.data()), block.size()});
  };
  EXPECT_EQ(orientation(good), 6);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good.substr(0, random() % (good.size() + 1));
    for (int j = 0; j < 3 && !bad.empty(); ++j) bad[random() % bad.size()] = static_cast<char>(random());
    const int value = orientation(bad);
    ASSERT_TRUE(value >= 1 && value <= 8);
  }
  std::string far = good;
  far.replace(4, 4, "\x7F\xFF\xFF\xFF");
  EXPECT_EQ(orientation(far), 1);
  far.replace(4, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(orientation(far), 1);
}

TEST(Bmp, ComesBackAsItWentAndEveryCutIsFound) {
  for (const int width : {4, 5, 6, 7}) {
    const Pixels photo = testing::MakePhoto(width, 9, 3, 1);
    const std::string encoded = testing::WriteBmp(photo);
    ExpectDecodesTo(encoded, photo);
    ExpectEveryCutIsFound(encoded);
  }
}

// Rows from the bottom up: 5 by 3 pixels whose colour is their number, in 8, 4 and 1 bits.
std::string PaletteBmp(int bits, int colours, bool os2) {
  const auto number = [](uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  const int entry = os2 ? 3 : 4, header = os2 ? 12 : 40;
  const auto data_at = static_cast<uint32_t>(14 + header + entry * colours);
  std::string text = "BM" + number(0, 8) + number(data_at, 4) + number(static_cast<uint32_t>(header), 4);
  const int side_bytes = os2 ? 2 : 4;
  text +=
      number(5, side_bytes) + number(3, side_bytes) + number(1, 2) + number(static_cast<uint32_t>(bits), 2);
  if (!os2) text += std::string(24, '\0');
  for (int i = 0; i < colours; ++i) {
    text += number(static_cast<uint32_t>(3 * i + 2), 1) + number(static_cast<uint32_t>(3 * i + 1), 1) +
            number(static_cast<uint32_t>(3 * i), 1) + std::string(os2 ? 0 : 1, '\0');
  }
  for (int y = 2; y >= 0; --y) {
    uint64_t row = 0;  // its first bit on top
    for (int x = 0; x < 5; ++x) {
      const auto colour = static_cast<uint64_t>((5 * y + x) % (1 << bits));
      row |= colour << (64 - bits * (x + 1));
    }
    for (int i = 0; i < (5 * bits + 31) / 32 * 4; ++i) text += static_cast<char>(row >> (56 - 8 * i));
  }
  return text;
}

TEST(Bmp, ColoursAreThoseOfThePalette) {
  for (const bool os2 : {false, true}) {
    for (const int bits : {1, 4, 8}) {
      Pixels wanted{5, 3, 3, {}};
      for (int i = 0; i < 15; ++i) {
        for (int c = 0; c < 3; ++c) wanted.data.push_back(static_cast<uint8_t>(3 * (i % (1 << bits)) + c));
      }
      const std::string bmp = PaletteBmp(bits, 1 << bits, os2);
      ExpectDecodesTo(bmp, wanted);
      ExpectEveryCutIsFound(bmp);
    }
  }
}

// A missing colour is not read from the memory behind the palette.
TEST(Bmp, AColourThatThePaletteLacksIsDamage) {
  const std::string bmp = PaletteBmp(8, 9, false);
  EXPECT_EQ(ReasonFor(bmp, {}), RejectReason::kDamaged);
  EXPECT_EQ(ReasonFor(PaletteBmp(8, 0, false), {}), RejectReason::kDamaged);
  const DecodeOptions options{.tolerate_damage = true};
  const PictureInfo info = ReadPictureInfo(AsBytes(bmp), options).value();
  Pixels pixels;
  ASSERT_TRUE(Decoder().Decode(AsBytes(bmp), info, {0, 0, 5, 3}, options, pixels));
  EXPECT_EQ(pixels.data[3 * 8], 24);
  EXPECT_EQ(pixels.data[3 * 9], 0);
}

TEST(Webp, LosslessComesBackAsItWentAndAlphaIsPutOnBlack) {
  const Pixels photo = testing::MakePhoto(40, 30, 3, 1);
  ExpectDecodesTo(testing::WriteWebp(photo, {}), photo);
  Pixels wanted = photo;
  std::string alpha;
  for (size_t i = 0; i < photo.data.size(); ++i) {
    if (i % 3 == 0) alpha += static_cast<char>(i % 256);
    wanted.data[i] = static_cast<uint8_t>((photo.data[i] * (i / 3 * 3 % 256) + 127) / 255);
  }
  ExpectDecodesTo(testing::WriteWebp(photo, {.alpha = alpha}), wanted);
}

TEST(Webp, EveryCutIsFound) {
  const Pixels photo = testing::MakePhoto(40, 30, 3, 1);
  for (const bool lossless : {false, true}) {
    ExpectEveryCutIsFound(testing::WriteWebp(photo, {.lossless = lossless}));
  }
}

TEST(Decoder, ADecoderGivesTheSameWhateverItDecodedBefore) {
  const Pixels photo = testing::MakePhoto(40, 30, 3, 1);
  const Pixels large = testing::MakePhoto(200, 100, 3, 2);
  std::vector<std::string> files = {testing::WriteJpeg(large, {}),
                                    testing::WriteJpeg(photo, {.progressive = true}),
                                    *EncodePng(photo),
                                    testing::WriteBmp(large),
                                    testing::WriteWebp(photo, {}),
                                    testing::WriteTiff(40, 30, Text(photo.data), {.compression = 5})};
  files.push_back(files[0].substr(0, 900));
  Decoder kept;
  Pixels out;
  for (int round = 0; round < 3; ++round) {
    for (const std::string& file : files) {
      const auto info = ReadPictureInfo(AsBytes(file), {});
      ASSERT_TRUE(info);
      const bool decoded =
          kept.Decode(AsBytes(file), *info, {0, 0, info->width, info->height}, {}, out).has_value();
      const auto fresh = DecodeWhole(file);
      ASSERT_EQ(decoded, fresh.has_value());
      if (decoded) {
        EXPECT_EQ(out.data, fresh->data);
      }
    }
    std::reverse(files.begin(), files.end());
  }
}

TEST(Decoder, WrongBytesAreRejectedOrShownButNeverWorse) {
  const Pixels photo = testing::MakePhoto(24, 20, 3, 1);
  const std::vector<uint8_t> palette(12, 99);
  const testing::GifFrame frame{0, 0, 24, 20, true, 1, std::string(480, '\2')};
  const std::string files[] = {testing::WriteJpeg(photo, {}),
                               testing::WriteJpeg(photo, {.progressive = true}),
                               testing::WriteJpeg(photo, {.arithmetic = true}),
                               *EncodePng(photo),
                               testing::WriteBmp(photo),
                               testing::WriteWebp(photo, {}),
                               testing::WriteWebp(photo, {.lossless = false}),
                               testing::WriteTiff(24, 20, Text(photo.data), {.compression = 5}),
                               testing::WriteGif(24, 20, palette, {&frame, 1})};
  std::mt19937 random(5);
  const DecodeOptions small{.max_pixels = 10'000, .tolerate_damage = true};
  for (const std::string& good : files) {
    for (int round = 0; round < 300; ++round) {
      std::string bad = good;
      for (int i = 0; i < 4; ++i)
        bad[random() % std::min<size_t>(bad.size(), 400)] = static_cast<char>(random());
      const auto shown = DecodeWhole(bad, small);
      if (shown) {
        EXPECT_EQ(shown->data.size(), static_cast<size_t>(shown->width) * shown->height * shown->channels);
      }
    }
  }
}

}  // namespace
}  // namespace weir::image
