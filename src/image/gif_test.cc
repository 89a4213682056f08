#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "image/testing/decoding.h"

namespace weir::image {
namespace {

using testing::DecodeWhole;
using testing::ExpectDecodesTo;
using testing::ExpectEveryCutIsFound;

const std::vector<uint8_t> kFourColours = {0, 0, 0, 250, 10, 20, 30, 240, 50, 60, 70, 230};

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

}  // namespace
}  // namespace weir::image
