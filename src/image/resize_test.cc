#include "image/resize.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace weir::image {
namespace {

// As noise() of tools/make_resize_reference.py.
Pixels Noise(int width, int height, int channels) {
  Pixels pixels{width, height, channels, {}};
  uint32_t state = 1;
  for (int i = 0; i < width * height * channels; ++i) {
    state = state * 1664525u + 1013904223u;
    pixels.data.push_back(static_cast<uint8_t>(state >> 24));
  }
  return pixels;
}

Pixels Cut(const Pixels& from, int x, int y, int width, int height) {
  Pixels part{width, height, from.channels, {}};
  for (int row = y; row < y + height; ++row) {
    const auto* begin = &from.data[(row * from.width + x) * from.channels];
    part.data.insert(part.data.end(), begin, begin + width * from.channels);
  }
  return part;
}

Pixels ResizeWhole(const Pixels& source, int width, int height) {
  Pixels out;
  Resizer().Resize(source, MakeAxis(source.width, width, 0, width),
                   MakeAxis(source.height, height, 0, height), out);
  return out;
}

struct Reference {
  int width, height, target_width, target_height;
  std::string_view pixels;
};
constexpr Reference kPillow[] = {
#include "image/testing/resize_reference.inc"
};

TEST(Resize, IsPillowsToTheBit) {
  for (const Reference& reference : kPillow) {
    const Pixels out = ResizeWhole(Noise(reference.width, reference.height, 3), reference.target_width,
                                   reference.target_height);
    ASSERT_EQ(out.data.size() * 2, reference.pixels.size());
    for (size_t i = 0; i < out.data.size(); ++i) {
      int expected = 0;
      std::from_chars(&reference.pixels[2 * i], &reference.pixels[2 * i] + 2, expected, 16);
      ASSERT_EQ(out.data[i], expected)
          << reference.width << "x" << reference.height << " to " << reference.target_width << "x"
          << reference.target_height << ", value " << i;
    }
  }
}

// Whatever vectors a processor has.
TEST(Resize, IsTheSameOnEveryProcessor) {
  for (const auto& [width, target] : {std::array{301, 207}, std::array{700, 224}, std::array{3000, 223}}) {
    const Pixels source = Noise(width, 90, 3);
    const Pixels expected = ResizeWhole(source, target, 31);
    for (const int64_t processor : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(processor);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      EXPECT_TRUE(ResizeWhole(source, target, 31).data == expected.data)
          << width << ", " << hwy::TargetName(processor);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
}

TEST(Resize, OfOneChannelEqualsThatOfThreeEqualOnes) {
  for (const int width : {7, 100, 140, 250, 333, 416, 800, 5000, 70000}) {
    const Pixels grey = Noise(width, 9, 1);
    Pixels rgb{width, 9, 3, {}};
    for (const uint8_t level : grey.data) rgb.data.insert(rgb.data.end(), 3, level);
    const Pixels small_grey = ResizeWhole(grey, 31, 20);
    const Pixels small_rgb = ResizeWhole(rgb, 31, 20);
    for (size_t i = 0; i < small_grey.data.size(); ++i) {
      ASSERT_EQ(small_rgb.data[3 * i + 1], small_grey.data[i]) << width;
    }
  }
}

TEST(Resize, OfAWindowIsThatPartOfTheWhole) {
  const Pixels source = Noise(6000, 40, 3);
  const Pixels whole = ResizeWhole(source, 900, 25);
  const Axis x = MakeAxis(6000, 900, 305, 480);
  const Axis y = MakeAxis(40, 25, 3, 10);
  const Pixels window = Cut(source, static_cast<int>(x.source_begin()), static_cast<int>(y.source_begin()),
                            static_cast<int>(x.source_end() - x.source_begin()),
                            static_cast<int>(y.source_end() - y.source_begin()));
  Pixels part;
  Resizer().Resize(window, x, y, part);
  const Pixels expected = Cut(whole, 305, 3, 480, 10);
  EXPECT_EQ(part.data, expected.data);
}

TEST(Resize, KeepsAFlatPictureFlatAtAnyReduction) {
  for (const int level : {1, 127, 255}) {
    for (const int width : {3, 2048, 2049, 70000}) {
      const Pixels flat{width, 3, 3,
                        std::vector<uint8_t>(static_cast<size_t>(width) * 9, static_cast<uint8_t>(level))};
      const Pixels out = ResizeWhole(flat, 2, 5);
      // The weights have 22 bits, as Pillow's, so that over very many taps their sum is not quite 1.
      for (const uint8_t value : out.data) ASSERT_NEAR(value, level, 1) << width;
    }
  }
}

TEST(Resize, ToTheSameSizeChangesNothing) {
  const Pixels source = Noise(33, 17, 3);
  EXPECT_EQ(ResizeWhole(source, 33, 17).data, source.data);
}

TEST(Axis, ReachesOnlyAsFarAsTheFilter) {
  const Axis axis =
      MakeAxis(500, 250, 100, 2);  // reduced by two: the triangle reaches two pixels to each side
  EXPECT_EQ(axis.source_begin(), 199);
  EXPECT_EQ(axis.source_end(), 205);
  const Axis enlarged = MakeAxis(8, 640000, 320000, 224);
  EXPECT_GE(enlarged.source_begin(), 3);
  EXPECT_LE(enlarged.source_end(), 6);
}

TEST(Axis, MirroredGivesTheMirroredPicture) {
  Pixels source = Noise(101, 1, 1);
  const Axis axis = MakeAxis(101, 40, 7, 22);
  const Axis row = MakeAxis(1, 1, 0, 1);
  Pixels straight, mirrored;
  Resizer().Resize(Cut(source, static_cast<int>(axis.source_begin()), 0,
                       static_cast<int>(axis.source_end() - axis.source_begin()), 1),
                   axis, row, straight);
  std::ranges::reverse(source.data);
  const Axis turned = Mirror(axis, 101);
  Resizer().Resize(Cut(source, static_cast<int>(turned.source_begin()), 0,
                       static_cast<int>(turned.source_end() - turned.source_begin()), 1),
                   turned, row, mirrored);
  std::ranges::reverse(mirrored.data);
  EXPECT_EQ(mirrored.data, straight.data);
}

}  // namespace
}  // namespace weir::image
