// JPEG: a window is exactly that part of a plain full decode, and damage is found wherever it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "image/decode.h"
#include "image/jpeg_guard.h"
#include "image/testing/pictures.h"

namespace weir::image {
namespace {

using testing::AsBytes;
using testing::JpegColour;
using testing::JpegShape;
using testing::WriteJpeg;

// libjpeg as its manual uses it, all rows one after the other; CMYK as stored.
Pixels PlainDecode(std::string_view jpeg) {
  JpegErrors errors;
  errors.strict = false;
  Pixels pixels;
  jpeg_decompress_struct cinfo{};
  cinfo.err = &errors.manager;
  if (setjmp(errors.escape) != 0) {
    ADD_FAILURE() << errors.message;
    return pixels;
  }
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&cinfo, TRUE);
  jpeg_start_decompress(&cinfo);
  pixels = {static_cast<int>(cinfo.output_width),
            static_cast<int>(cinfo.output_height),
            cinfo.output_components,
            {}};
  pixels.data.resize(static_cast<size_t>(pixels.width) * pixels.height * pixels.channels);
  while (cinfo.output_scanline < cinfo.output_height) {
    JSAMPROW row = &pixels.data[static_cast<size_t>(cinfo.output_scanline) * pixels.width * pixels.channels];
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return pixels;
}

Accepted<Pixels> DecodeWindow(Decoder& decoder, std::string_view jpeg, const Window& window,
                              const DecodeOptions& options = {}) {
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(jpeg), options));
  Pixels pixels;
  TRY_STATUS(decoder.Decode(AsBytes(jpeg), info, window, options, pixels));
  return pixels;
}

Accepted<Pixels> DecodeWhole(std::string_view jpeg, const DecodeOptions& options = {}) {
  Decoder decoder;
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(jpeg), options));
  return DecodeWindow(decoder, jpeg, {0, 0, info.width, info.height}, options);
}

bool IsPartOf(const Pixels& part, const Window& window, const Pixels& whole) {
  if (part.width != window.width || part.height != window.height || part.channels != whole.channels)
    return false;
  const size_t bytes = static_cast<size_t>(part.width) * part.channels;
  for (int y = 0; y < part.height; ++y) {
    const size_t from = (static_cast<size_t>(window.y + y) * whole.width + window.x) * whole.channels;
    if (std::memcmp(&part.data[y * bytes], &whole.data[from], bytes) != 0) return false;
  }
  return true;
}

int Between(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

// A window with each edge often on or near the picture's own.
Window RandomWindow(std::mt19937& random, int width, int height) {
  const auto span = [&](int size) {
    const int first = Between(random, 0, 3) == 0 ? 0 : Between(random, 0, size - 1);
    const int count = Between(random, 0, 3) == 0 ? size - first : Between(random, 1, size - first);
    return std::pair(first, count);
  };
  const auto [x, columns] = span(width);
  const auto [y, rows] = span(height);
  return {x, y, columns, rows};
}

std::string Words(const JpegShape& shape, const Window& window, int width, int height) {
  return ::testing::PrintToString(std::vector<int>{
      shape.luma[0], shape.luma[1], shape.chroma[0], shape.chroma[1], shape.progressive, shape.separate_scans,
      shape.arithmetic, shape.restart_rows, width, height, window.x, window.y, window.width, window.height});
}

struct Coding {
  const char* name;
  bool progressive, separate_scans, arithmetic, coarse;
  int restart_rows;
};
constexpr Coding kCodings[] = {
    {"Baseline", false, false, false, false, 0},
    {"Restarts", false, false, false, false, 1},
    {"Progressive", true, false, false, false, 0},
    {"ProgressiveRestarts", true, false, false, false, 2},
    {"SeparateScans", false, true, false, false, 0},
    {"Arithmetic", false, false, true, false, 0},
    {"ArithmeticProgressive", true, false, true, false, 0},
    {"Coarse", true, false, false, true, 0},
};

class JpegWindow : public ::testing::TestWithParam<Coding> {};

TEST_P(JpegWindow, IsExactlyThatPartOfAFullDecode) {
  struct Factors {
    std::array<int, 2> luma, chroma;
  };
  constexpr Factors kSamplings[] = {{{1, 1}, {1, 1}}, {{2, 1}, {1, 1}}, {{2, 2}, {1, 1}}, {{1, 2}, {1, 1}},
                                    {{4, 1}, {1, 1}}, {{4, 2}, {1, 1}}, {{2, 4}, {1, 1}}, {{4, 4}, {1, 1}},
                                    {{2, 2}, {2, 1}}, {{2, 2}, {1, 2}}, {{1, 4}, {1, 1}}, {{1, 1}, {2, 2}}};
  const Coding& coding = GetParam();
  std::mt19937 random(7);
  Decoder decoder;
  int wrong = 0;
  for (const Factors& factors : kSamplings) {
    const int blocks = factors.luma[0] * factors.luma[1] + 2 * factors.chroma[0] * factors.chroma[1];
    if (blocks > 10 && !coding.separate_scans) continue;  // more than a scan may interleave
    for (int picture = 0; picture < 6; ++picture) {
      JpegShape shape{.luma = factors.luma,
                      .chroma = factors.chroma,
                      .progressive = coding.progressive,
                      .separate_scans = coding.separate_scans,
                      .arithmetic = coding.arithmetic,
                      .restart_rows = coding.restart_rows};
      shape.coarse = coding.coarse;
      const int width = Between(random, 1, picture == 0 ? 12 : 150);
      const int height = Between(random, 1, picture == 1 ? 12 : 150);
      const std::string jpeg = WriteJpeg(testing::MakePhoto(width, height, 3, picture), shape);
      const Pixels whole = PlainDecode(jpeg);
      for (int i = 0; i < 25; ++i) {
        const Window window = RandomWindow(random, width, height);
        const auto part = DecodeWindow(decoder, jpeg, window);
        ASSERT_TRUE(part) << Words(shape, window, width, height) << part.error().detail;
        if (!IsPartOf(*part, window, whole) && ++wrong < 10)
          ADD_FAILURE() << Words(shape, window, width, height);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Codings, JpegWindow, ::testing::ValuesIn(kCodings),
                         [](const auto& info) { return info.param.name; });

TEST(Jpeg, AWindowOfAGreyPictureIsExactAndHasOneChannel) {
  std::mt19937 random(3);
  Decoder decoder;
  for (const std::array<int, 2> luma : {std::array{1, 1}, {2, 2}, {1, 4}}) {
    for (const bool progressive : {false, true}) {
      const std::string jpeg =
          WriteJpeg(testing::MakePhoto(99, 77, 1, 5),
                    {.colour = JpegColour::kGrey, .luma = luma, .progressive = progressive});
      const Pixels whole = PlainDecode(jpeg);
      for (int i = 0; i < 50; ++i) {
        const Window window = RandomWindow(random, 99, 77);
        const auto part = DecodeWindow(decoder, jpeg, window);
        ASSERT_TRUE(part) << part.error().detail;
        ASSERT_EQ(part->channels, 1);
        ASSERT_TRUE(IsPartOf(*part, window, whole))
            << luma[0] << 'x' << luma[1] << ::testing::PrintToString(window.y);
      }
    }
  }
}

TEST(Jpeg, InvertedInksBecomeRgbInWholeAndInPart) {
  const Pixels photo = testing::MakePhoto(60, 40, 3, 9);
  for (const JpegColour colour : {JpegColour::kCmyk, JpegColour::kYcck}) {
    const std::string jpeg = WriteJpeg(photo, {.colour = colour, .luma = {1, 1}, .quality = 100});
    const Pixels inks = PlainDecode(jpeg);
    ASSERT_EQ(inks.channels, 4);
    const auto whole = DecodeWhole(jpeg);
    ASSERT_TRUE(whole) << whole.error().detail;
    ASSERT_EQ(whole->channels, 3);
    int worst = 0;
    for (size_t i = 0; i < photo.data.size(); ++i)
      worst = std::max(worst, std::abs(photo.data[i] - whole->data[i]));
    EXPECT_LE(worst, 24);
    for (size_t i = 0; i < whole->data.size(); ++i) {
      const double ink = inks.data[i / 3 * 4 + i % 3];
      const double black = inks.data[i / 3 * 4 + 3];
      ASSERT_NEAR(whole->data[i], ink * black / 255, 1.0);
    }
    Decoder decoder;
    const auto part = DecodeWindow(decoder, jpeg, {13, 7, 30, 20});
    ASSERT_TRUE(part);
    EXPECT_TRUE(IsPartOf(*part, {13, 7, 30, 20}, *whole));
  }
}

TEST(Jpeg, StoredRgbIsNotConverted) {
  const Pixels photo = testing::MakePhoto(50, 30, 3, 2);
  const auto whole =
      DecodeWhole(WriteJpeg(photo, {.colour = JpegColour::kRgb, .luma = {1, 1}, .quality = 100}));
  ASSERT_TRUE(whole);
  int worst = 0;
  for (size_t i = 0; i < photo.data.size(); ++i)
    worst = std::max(worst, std::abs(photo.data[i] - whole->data[i]));
  EXPECT_LE(worst, 4);
}

TEST(Jpeg, ACutAnywhereIsFound) {
  for (const Coding& coding : kCodings) {
    JpegShape shape{.progressive = coding.progressive,
                    .separate_scans = coding.separate_scans,
                    .arithmetic = coding.arithmetic,
                    .restart_rows = coding.restart_rows};
    shape.coarse = coding.coarse;
    const std::string jpeg = WriteJpeg(testing::MakePhoto(64, 48, 3, 1), shape);
    Decoder decoder;
    // The end marker's own two bytes are outside of the scans. Arithmetic codes do not tell where they end.
    const size_t needed = jpeg.size() - (coding.arithmetic || coding.coarse ? 0 : 2);
    for (size_t size = 0; size < needed; ++size) {
      // The window ends far above the bottom, where a decoder might stop reading.
      EXPECT_FALSE(DecodeWindow(decoder, std::string_view(jpeg).substr(0, size), {20, 0, 9, 9}))
          << coding.name << " cut to " << size;
    }
  }
}

TEST(Jpeg, DamageBelowTheWindowIsFoundAsAFullDecodeFindsIt) {
  std::mt19937 random(11);
  Decoder decoder;
  for (const std::array<int, 2> luma : {std::array{1, 1}, {2, 1}, {2, 2}, {1, 2}}) {
    const std::string good = WriteJpeg(testing::MakePhoto(160, 160, 3, 4), {.luma = luma});
    int found = 0;
    for (int round = 0; round < 100; ++round) {
      std::string bad = good;
      for (int flip = 0; flip < 8; ++flip) {
        const int bit =
            Between(random, static_cast<int>(bad.size()) * 4, static_cast<int>(bad.size()) * 8 - 1);
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      }
      const bool full = !DecodeWhole(bad);
      const bool part = !DecodeWindow(decoder, bad, {40, 0, 60, Between(random, 1, 100)});
      EXPECT_EQ(full, part) << round;
      found += part ? 1 : 0;
    }
    EXPECT_GE(found, 60);
  }
}

TEST(Jpeg, DamageThatIsToleratedGivesTheRowsBeforeIt) {
  const std::string good = WriteJpeg(testing::MakePhoto(80, 80, 3, 6), {});
  const std::string_view half = std::string_view(good).substr(0, good.size() / 2);
  EXPECT_FALSE(DecodeWhole(half));
  const auto shown = DecodeWhole(half, {.tolerate_damage = true});
  ASSERT_TRUE(shown) << shown.error().detail;
  const Window top{0, 0, 80, 14};
  Decoder decoder;
  const auto part = DecodeWindow(decoder, half, top, {.tolerate_damage = true});
  ASSERT_TRUE(part);
  EXPECT_TRUE(IsPartOf(*part, top, PlainDecode(good)));
}

TEST(Jpeg, WhatLiesOutsideOfTheScansIsNoDamage) {
  for (const Coding& coding : kCodings) {
    if (coding.arithmetic || coding.coarse) continue;
    const std::string good =
        WriteJpeg(testing::MakePhoto(64, 48, 3, 1), {.progressive = coding.progressive,
                                                     .separate_scans = coding.separate_scans,
                                                     .restart_rows = coding.restart_rows});
    const std::string scans = good.substr(0, good.size() - 2), end = good.substr(good.size() - 2);
    std::string before_tables = good;
    before_tables.insert(good.find("\xff\xdb"), "\x12\x34");
    const Pixels wanted = PlainDecode(good);
    for (const std::string& odd :
         {scans, scans + "\xff", scans + '\x7f', scans + '\x7f' + end, scans + '\0' + end,
          scans + "\x12\x34\x56\x78" + end, scans + std::string(64, '\0') + end,
          scans + std::string(3000, '\0') + end, scans + "\xff\xff\xff" + end, scans + "\x7f\xff\xff" + end,
          good + end, good + good, good + std::string(99, '\x5a'), before_tables}) {
      const auto decoded = DecodeWhole(odd);
      ASSERT_TRUE(decoded) << coding.name << ", " << odd.size() - good.size() << ": "
                           << decoded.error().detail;
      EXPECT_TRUE(decoded->data == wanted.data) << coding.name;
    }
  }
}

// A damaged scan often ends early, and leaves what was its rest.
TEST(Jpeg, TheRestOfADamagedScanIsDamage) {
  std::mt19937 random(3);
  int found = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const std::string good = WriteJpeg(testing::MakePhoto(64, 48, 3, 1), {.restart_rows = round % 2});
    std::string odd = good.substr(0, good.size() - 2);
    for (int i = Between(random, 5, 40); i > 0; --i) odd += static_cast<char>(Between(random, 0, 254));
    odd += good.substr(good.size() - 2);
    found += DecodeWhole(odd) ? 0 : 1;
  }
  EXPECT_EQ(found, kRounds);
}

TEST(Jpeg, BytesAfterTheEndMarkerAreNoDamage) {
  EXPECT_TRUE(DecodeWhole(WriteJpeg(testing::MakePhoto(40, 40, 3, 6), {}) + std::string(3000, '\x5A')));
}

TEST(Jpeg, TablesOfOnePictureDoNotReachTheNext) {
  const std::string good = WriteJpeg(testing::MakePhoto(40, 40, 3, 6), {});
  const size_t table = good.find("\xFF\xDB");
  ASSERT_NE(table, good.npos);
  const size_t length = static_cast<uint8_t>(good[table + 2]) << 8 | static_cast<uint8_t>(good[table + 3]);
  std::string bare = good;
  bare.erase(table, 2 + length);
  Decoder decoder;
  EXPECT_TRUE(DecodeWindow(decoder, good, {0, 0, 40, 40}));
  const auto decoded = DecodeWindow(decoder, bare, {0, 0, 40, 40});
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().reason, RejectReason::kDamaged);
}

TEST(Jpeg, EveryOrientationIsRead) {
  for (const auto order : {testing::ByteOrder::kLittle, testing::ByteOrder::kBig}) {
    for (int orientation = 0; orientation <= 9; ++orientation) {
      const std::string jpeg =
          WriteJpeg(testing::MakePhoto(20, 10, 3, 1), {.exif = testing::ExifSegment(orientation, order)});
      const auto info = ReadPictureInfo(AsBytes(jpeg), {});
      ASSERT_TRUE(info) << info.error().detail;
      EXPECT_EQ(info->orientation, orientation >= 1 && orientation <= 8 ? orientation : 1);
      EXPECT_EQ(info->width, 20);
      EXPECT_EQ(info->height, 10);
      EXPECT_TRUE(DecodeWhole(jpeg));
    }
  }
}

TEST(Jpeg, MoreScansThanAnyEncoderWritesAreRefused) {
  // A fine scan repeated: each one walks over the whole picture.
  const std::string jpeg =
      WriteJpeg(testing::MakePhoto(16, 16, 1, 1), {.colour = JpegColour::kGrey, .progressive = true});
  const size_t last = jpeg.rfind("\xFF\xDA");
  ASSERT_NE(last, jpeg.npos);
  const size_t table = jpeg.rfind("\xFF\xC4");
  const size_t from = std::min(last, table);
  const std::string scan = jpeg.substr(from, jpeg.size() - 2 - from);
  std::string many = jpeg.substr(0, jpeg.size() - 2);
  for (int i = 0; i < 600; ++i) many += scan;
  many += "\xFF\xD9";
  const auto decoded = DecodeWhole(many, {.tolerate_damage = true});
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().reason, RejectReason::kUnsupported);
}

}  // namespace
}  // namespace weir::image
