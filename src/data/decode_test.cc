// The formats other than JPEG, and what is common to all.
#include "data/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "data/encode.h"
#include "data/exif.h"
#include "data/testing/pictures.h"

namespace weir::data {
namespace {

using testing::AsBytes;

const std::vector<uint8_t> kFourColours = {0, 0, 0, 250, 10, 20, 30, 240, 50, 60, 70, 230};

Accepted<Pixels> DecodeWindow(std::string_view encoded, const Window& window,
                              const DecodeOptions& options = {}) {
  Decoder decoder;
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(encoded), options));
  Pixels pixels;
  TRY_STATUS(decoder.Decode(AsBytes(encoded), info, window, options, pixels));
  return pixels;
}

Accepted<Pixels> DecodeWhole(std::string_view encoded, const DecodeOptions& options = {}) {
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(encoded), options));
  return DecodeWindow(encoded, {0, 0, info.width, info.height}, options);
}

RejectReason ReasonFor(std::string_view encoded, const DecodeOptions& options = {}) {
  const auto decoded = DecodeWhole(encoded, options);
  EXPECT_FALSE(decoded);
  return decoded ? RejectReason::kFailed : decoded.error().reason;
}

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

Pixels Cut(const Pixels& whole, const Window& window) {
  Pixels part{window.width, window.height, whole.channels, {}};
  for (int y = 0; y < window.height; ++y) {
    const size_t from = (static_cast<size_t>(window.y + y) * whole.width + window.x) * whole.channels;
    part.data.insert(part.data.end(), whole.data.begin() + from,
                     whole.data.begin() + from + static_cast<size_t>(window.width) * whole.channels);
  }
  return part;
}

// Decodes as a whole and in part to exactly `wanted`, and not at all when cut.
void ExpectDecodesTo(std::string_view encoded, const Pixels& wanted, int tolerance = 0) {
  const auto whole = DecodeWhole(encoded);
  ASSERT_TRUE(whole) << whole.error().detail;
  ASSERT_EQ(whole->width, wanted.width);
  ASSERT_EQ(whole->height, wanted.height);
  ASSERT_EQ(whole->channels, wanted.channels);
  ASSERT_EQ(whole->data.size(), wanted.data.size());
  for (size_t i = 0; i < wanted.data.size(); ++i) ASSERT_NEAR(whole->data[i], wanted.data[i], tolerance) << i;
  const int width = wanted.width;
  const int height = wanted.height;
  for (const Window& window : {Window{width / 3, height / 4, width / 2, height / 2},
                               Window{width - 1, height - 1, 1, 1}, Window{0, height / 2, width, 1}}) {
    const auto part = DecodeWindow(encoded, window);
    ASSERT_TRUE(part) << part.error().detail;
    EXPECT_EQ(part->data, Cut(*whole, window).data);
  }
}

void ExpectEveryCutIsFound(std::string_view encoded) {
  for (size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(DecodeWhole(encoded.substr(0, size))) << "cut to " << size << " of " << encoded.size();
  }
}

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
  const std::string gif = testing::WriteGif(40, 30, kFourColours, {});
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

TEST(Limits, NothingAndTextAreNoPictures) {
  EXPECT_EQ(ReasonFor(""), RejectReason::kEmpty);
  EXPECT_EQ(ReasonFor("<!DOCTYPE html><title>404</title>"), RejectReason::kNotAPicture);
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

// --- PNG

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

// --- TIFF

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

// --- GIF

std::string Indices(int count, int seed) {
  std::mt19937 random(seed);
  std::string indices;
  for (int i = 0; i < count; ++i) indices += static_cast<char>(random() % 4);
  return indices;
}

Pixels Painted(int width, int height, const testing::GifFrame& frame) {
  Pixels canvas{width, height, 3, std::vector<uint8_t>(static_cast<size_t>(width) * height * 3)};
  for (int y = 0; y < frame.height; ++y) {
    for (int x = 0; x < frame.width; ++x) {
      const int index = frame.indices[static_cast<size_t>(y) * frame.width + x];
      const int column = frame.left + x;
      const int row = frame.top + y;
      if (index == frame.transparent || column >= width || row >= height) continue;
      std::copy_n(&kFourColours[index * 3], 3, &canvas.data[(static_cast<size_t>(row) * width + column) * 3]);
    }
  }
  return canvas;
}

TEST(Gif, TheFirstFrameIsPutOnABlackCanvas) {
  const testing::GifFrame second{0, 0, 30, 20, false, -1, Indices(600, 2)};
  for (const bool interlaced : {false, true}) {
    for (const int transparent : {-1, 2}) {
      const testing::GifFrame whole{0, 0, 30, 20, interlaced, transparent, Indices(600, 1)};
      const testing::GifFrame part{5, 3, 17, 12, interlaced, transparent, Indices(204, 1)};
      const testing::GifFrame beyond{20, 10, 17, 12, interlaced, transparent, Indices(204, 1)};
      for (const testing::GifFrame& first : {whole, part, beyond}) {
        const testing::GifFrame frames[] = {first, second};
        ExpectDecodesTo(testing::WriteGif(30, 20, kFourColours, frames), Painted(30, 20, first));
      }
    }
  }
}

TEST(Gif, EveryCutIsFoundAlsoInLaterFrames) {
  const testing::GifFrame frames[] = {{0, 0, 12, 10, false, -1, Indices(120, 1)},
                                      {0, 0, 12, 10, false, -1, Indices(120, 2)}};
  const std::string good = testing::WriteGif(12, 10, kFourColours, frames);
  ExpectEveryCutIsFound(good);
  EXPECT_TRUE(DecodeWhole(good + "trailing garbage"));
}

// --- BMP

TEST(Bmp, ComesBackAsItWentAndEveryCutIsFound) {
  for (const int width : {4, 5, 6, 7}) {
    const Pixels photo = testing::MakePhoto(width, 9, 3, 1);
    const std::string encoded = testing::WriteBmp(photo);
    ExpectDecodesTo(encoded, photo);
    ExpectEveryCutIsFound(encoded);
  }
}

// --- WebP

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

// --- all

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
  const testing::GifFrame frame{0, 0, 24, 20, true, 1, Indices(480, 1)};
  const std::string files[] = {testing::WriteJpeg(photo, {}),
                               testing::WriteJpeg(photo, {.progressive = true}),
                               testing::WriteJpeg(photo, {.arithmetic = true}),
                               *EncodePng(photo),
                               testing::WriteBmp(photo),
                               testing::WriteWebp(photo, {}),
                               testing::WriteWebp(photo, {.lossless = false}),
                               testing::WriteTiff(24, 20, Text(photo.data), {.compression = 5}),
                               testing::WriteGif(24, 20, kFourColours, {&frame, 1})};
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
}  // namespace weir::data
