// JPEG: a window is exactly that part of a plain full decode, and damage is found wherever it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "data/decode.h"
#include "data/jpeg_guard.h"
#include "data/testing/pictures.h"

namespace weir::data {
namespace {

using testing::AsBytes;
using testing::JpegColour;
using testing::JpegShape;

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
  pixels = {static_cast<int>(cinfo.output_width), static_cast<int>(cinfo.output_height), cinfo.output_components, {}};
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

[[maybe_unused]] Accepted<Pixels> DecodeWhole(std::string_view jpeg, const DecodeOptions& options = {}) {
  Decoder decoder;
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(jpeg), options));
  return DecodeWindow(decoder, jpeg, {0, 0, info.width, info.height}, options);
}

bool IsPartOf(const Pixels& part, const Window& window, const Pixels& whole) {
  if (part.width != window.width || part.height != window.height || part.channels != whole.channels) return false;
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
  return ::testing::PrintToString(std::vector<int>{shape.luma[0], shape.luma[1], shape.chroma[0], shape.chroma[1],
                                                   shape.progressive, shape.separate_scans, shape.arithmetic,
                                                   shape.restart_rows, width, height, window.x, window.y,
                                                   window.width, window.height});
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
  struct Factors { std::array<int, 2> luma, chroma; };
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
        if (!IsPartOf(*part, window, whole) && ++wrong < 10) ADD_FAILURE() << Words(shape, window, width, height);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Codings, JpegWindow, ::testing::ValuesIn(kCodings),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weir::data
