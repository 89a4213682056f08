#include "image/planar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace weir::image {
namespace {

// A picture whose rows end right before other memory.
struct Made {
  std::vector<uint8_t> planes[3];
  PlanarPixels picture;
  Made(int width, int height, YuvColours colours = {}) {
    std::mt19937 chance(static_cast<unsigned>(width * 1000 + height));
    picture.width = width;
    picture.height = height;
    picture.colours = colours;
    for (int i = 0; i < 3; ++i) {
      const int w = i == 0 ? width : (width + 1) / 2, h = i == 0 ? height : (height + 1) / 2;
      planes[i].resize(static_cast<size_t>(w) * h);
      for (uint8_t& level : planes[i]) level = static_cast<uint8_t>(chance() % 220 + 16);
      picture.planes[i] = planes[i].data();
      picture.steps[i] = w;
    }
  }
};

double Sample(const Made& made, int plane, double x0, double y0, const Axis& x, const Axis& y, int64_t column,
              int64_t row) {
  const auto c = static_cast<size_t>(column), r = static_cast<size_t>(row);
  double sum = 0;
  for (int32_t j = 0; j < y.counts[r]; ++j) {
    for (int32_t i = 0; i < x.counts[c]; ++i) {
      const auto at = static_cast<size_t>((y0 + static_cast<double>(y.begins[r]) + j) *
                                              static_cast<double>(made.picture.steps[plane]) +
                                          x0 + static_cast<double>(x.begins[c]) + i);
      sum += made.planes[plane][at] *
             (x.weights[c * static_cast<size_t>(x.stride) + static_cast<size_t>(i)] / 4194304.0) *
             (y.weights[r * static_cast<size_t>(y.stride) + static_cast<size_t>(j)] / 4194304.0);
    }
  }
  return sum;
}

void ExpectExact(const Made& made, const PlanarResizer::Wish& wish, PlanarResizer& resizer) {
  Pixels out;
  resizer.Resize(made.picture, wish, out);
  ASSERT_EQ(out.width, wish.shown.width);
  ASSERT_EQ(out.height, wish.shown.height);
  ASSERT_EQ(out.data.size(), static_cast<size_t>(out.width) * out.height * 3);
  Window part = wish.part;
  part.width += part.x % 2;
  part.height += part.y % 2;
  part.x -= part.x % 2;
  part.y -= part.y % 2;
  Axis x[3], y[3];
  for (int i = 0; i < 3; ++i) {
    const double parts = i == 0 ? 1 : 2;
    x[i] = MakeAxis(static_cast<int64_t>(std::ceil(part.width / parts)), part.width / parts, wish.width,
                    wish.shown.x, wish.shown.width);
    y[i] = MakeAxis(static_cast<int64_t>(std::ceil(part.height / parts)), part.height / parts, wish.height,
                    wish.shown.y, wish.shown.height);
  }
  const YuvColours& colours = made.picture.colours;
  const double luma = colours.full_range ? 1 : 255.0 / 219, chroma = colours.full_range ? 1 : 255.0 / 224;
  double worst = 0;
  for (int64_t row = 0; row < out.height; ++row) {
    for (int64_t column = 0; column < out.width; ++column) {
      double level[3];
      for (int i = 0; i < 3; ++i)
        level[i] = Sample(made, i, i == 0 ? part.x : part.x / 2, i == 0 ? part.y : part.y / 2, x[i], y[i],
                          column, row);
      const double l = luma * (level[0] - (colours.full_range ? 0 : 16)), u = chroma * (level[1] - 128),
                   v = chroma * (level[2] - 128);
      const double red = l + 2 * (1 - colours.red) * v, blue = l + 2 * (1 - colours.blue) * u;
      const double green = (l - colours.red * red - colours.blue * blue) / (1 - colours.red - colours.blue);
      const double wanted[3] = {red, green, blue};
      for (int c = 0; c < 3; ++c) {
        const double got = out.data[static_cast<size_t>((row * out.width + column) * 3 + c)];
        worst =
            std::max(worst, std::abs(std::clamp(std::round(c == 1 ? green : wanted[c]), 0.0, 255.0) - got));
      }
    }
  }
  EXPECT_LE(worst, 1) << made.picture.width << "x" << made.picture.height << " to " << wish.width << "x"
                      << wish.height;
}

PlanarResizer::Wish Whole(const Made& made, int width, int height) {
  return {{0, 0, made.picture.width, made.picture.height}, width, height, {0, 0, width, height}};
}

TEST(PlanarResizer, EqualsTheExactSums) {
  PlanarResizer resizer;
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{96, 54}, {97, 55}, {2, 2}, {1, 1}, {33, 7}, {640, 20}}) {
    const Made made(width, height);
    for (const auto& [w, h] : std::vector<std::pair<int, int>>{{28, 28}, {96, 54}, {7, 5}, {131, 70}, {1, 1}})
      ExpectExact(made, Whole(made, w, h), resizer);
  }
}

TEST(PlanarResizer, TakesPartsAndShowsPartsOfThem) {
  PlanarResizer resizer;
  const Made made(120, 80);
  ExpectExact(made, {{10, 6, 60, 40}, 24, 16, {0, 0, 24, 16}}, resizer);
  ExpectExact(made, {{11, 7, 61, 41}, 24, 16, {3, 2, 17, 9}}, resizer);
  ExpectExact(made, {{119, 79, 1, 1}, 8, 8, {0, 0, 8, 8}}, resizer);
}

TEST(PlanarResizer, KnowsTheColoursOfHighDefinitionAndOfFullRange) {
  PlanarResizer resizer;
  for (const YuvColours& colours : {YuvColours{.red = 0.2126, .blue = 0.0722}, YuvColours{.full_range = true},
                                    YuvColours{.red = 0.2627, .blue = 0.0593, .full_range = true}}) {
    const Made made(64, 48, colours);
    ExpectExact(made, Whole(made, 20, 20), resizer);
  }
}

TEST(PlanarResizer, KeepsWhiteAndBlack) {
  Made made(64, 64);
  for (const int level : {16, 235}) {
    std::ranges::fill(made.planes[0], static_cast<uint8_t>(level));
    std::ranges::fill(made.planes[1], uint8_t{128});
    std::ranges::fill(made.planes[2], uint8_t{128});
    PlanarResizer resizer;
    Pixels out;
    for (const int side : {3, 20, 64, 100}) {
      resizer.Resize(made.picture, Whole(made, side, side), out);
      EXPECT_TRUE(std::ranges::all_of(out.data, [&](uint8_t each) {
        return each == (level == 16 ? 0 : 255);
      })) << side;
    }
  }
}

}  // namespace
}  // namespace weir::image
