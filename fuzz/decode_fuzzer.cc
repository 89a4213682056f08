// Any bytes as a picture: the header, then a random window of it, strict and tolerant: what is taken as it is
// has to be shown the same where damage is tolerated, by libjpeg's own reading of the codes; and has to be
// taken by a Preparer, and nothing else. Given an empty
// corpus folder, it begins by making pictures of every format there.
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "dataset/preparer.h"
#include "image/decode.h"
#include "image/encode.h"
#include "image/testing/pictures.h"

namespace {

using namespace weir;
using namespace weir::image;
using namespace weir::dataset;

std::string Text(const Pixels& pixels) { return {pixels.data.begin(), pixels.data.end()}; }

std::vector<std::string> MakeSeeds() {
  using testing::JpegColour;
  const Pixels photo = testing::MakePhoto(33, 21, 3, 1);
  const Pixels grey = testing::MakePhoto(33, 21, 1, 1);
  const std::vector<uint8_t> palette = {0, 0, 0, 250, 10, 20, 30, 240, 50, 60, 70, 230};
  std::string indices;
  for (int i = 0; i < 33 * 21; ++i) indices += static_cast<char>(i * i % 4);
  const testing::GifFrame frames[] = {{0, 0, 33, 21, true, 2, indices}, {4, 4, 11, 9, false, -1, indices}};
  std::vector<std::string> seeds = {
      testing::WriteJpeg(photo, {}),
      testing::WriteJpeg(photo, {.restart_rows = 1}),
      testing::WriteJpeg(photo, {.quality = 100, .codes = testing::JpegCodes::kOwn}),
      testing::WriteJpeg(photo, {.luma = {1, 1}, .quality = 30, .codes = testing::JpegCodes::kLong}),
      testing::WriteJpeg(photo, {.luma = {1, 1}, .progressive = true}),
      testing::WriteJpeg(photo, {.luma = {1, 2}, .arithmetic = true}),
      testing::WriteJpeg(photo, {.progressive = true, .arithmetic = true, .restart_rows = 1}),
      testing::WriteJpeg(photo, {.luma = {2, 1}, .separate_scans = true, .restart_rows = 1}),
      testing::WriteJpeg(photo, {.colour = JpegColour::kYcck}),
      testing::WriteJpeg(photo, {.colour = JpegColour::kCmyk, .luma = {1, 1}}),
      testing::WriteJpeg(
          grey, {.colour = JpegColour::kGrey, .exif = testing::ExifSegment(6, testing::ByteOrder::kBig)}),
      *EncodePng(photo),
      testing::WritePng(33, 21, Text(grey), {.colour_type = 0, .interlaced = true}),
      testing::WritePng(33, 21, indices,
                        {.colour_type = 3,
                         .transparent = "ab",
                         .palette = palette,
                         .exif = testing::ExifBlock(3, testing::ByteOrder::kLittle)}),
      testing::WriteGif(33, 21, palette, frames),
      testing::WriteBmp(photo),
      testing::WriteWebp(photo, {}),
      testing::WriteWebp(photo, {.lossless = false, .alpha = indices}),
      testing::WriteTiff(33, 21, Text(grey), {.samples = 1, .compression = 1, .photometric = 3})};
  for (const int compression : {1, 5, 7, 8, 32773}) {
    seeds.push_back(testing::WriteTiff(33, 21, Text(photo), {.compression = compression}));
    seeds.push_back(
        testing::WriteTiff(33, 21, Text(photo), {.compression = compression, .tile = 16, .planar = true}));
  }
  return seeds;
}

// A window of `info` that the bytes themselves choose.
Window ChooseWindow(const PictureInfo& info, std::span<const uint8_t> bytes) {
  const auto pick = [&](size_t from_end, int limit) { return bytes[bytes.size() - from_end] * limit / 256; };
  Window window{pick(1, info.width), pick(2, info.height)};
  window.width = 1 + pick(3, info.width - window.x);
  window.height = 1 + pick(4, info.height - window.y);
  return window;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  for (int i = 1; i < *count; ++i) {
    const std::filesystem::path folder = (*arguments)[i];
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error) || !std::filesystem::is_empty(folder, error)) continue;
    int number = 0;
    for (const std::string& seed : MakeSeeds()) {
      CHECK(WriteFileWhole(folder / ("made-" + std::to_string(number++)), seed).has_value());
    }
    break;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto encoded = std::as_bytes(std::span(data, size));
  static Decoder decoder;
  static Pixels pixels, strict;
  static Preparer preparer({.resize = Size{20, 16}, .crop = Size{12, 14}}, {.max_pixels = 100'000});
  const bool prepared = preparer.Prepare(encoded).has_value();
  bool taken = false;
  for (const bool tolerate : {false, true}) {
    const DecodeOptions options{.max_pixels = 100'000, .tolerate_damage = tolerate};
    const auto info = ReadPictureInfo(encoded, options);
    if (!info) {
      CHECK(!prepared);
      return 0;
    }
    CHECK(info->width >= 1 && info->height >= 1 && info->orientation >= 1 && info->orientation <= 8);
    const Window window = ChooseWindow(*info, {data, size});
    if (!decoder.Decode(encoded, *info, window, options, pixels)) {
      CHECK(!taken && (tolerate || !prepared));
      continue;
    }
    CHECK(tolerate || prepared);
    if (!tolerate) strict = pixels;
    CHECK(!taken || pixels.data == strict.data);
    taken = true;
    CHECK(pixels.width == window.width && pixels.height == window.height);
    CHECK(pixels.data.size() == static_cast<size_t>(pixels.width) * pixels.height * pixels.channels);
  }
  return 0;
}
