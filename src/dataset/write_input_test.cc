#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/seed.h"
#include "dataset/preparer.h"
#include "image/testing/each_target.h"

namespace weir::dataset {
namespace {

// Every level in every channel, and a width that no vector divides.
image::Pixels EveryLevel(int channels) {
  image::Pixels pixels{259, 5, channels, {}};
  for (int i = 0; i < pixels.width * pixels.height; ++i) {
    for (int c = 0; c < channels; ++c) pixels.data.push_back(static_cast<uint8_t>(i * (c + 1) + 7 * c));
  }
  return pixels;
}

size_t PlaceOf(const Recipe& recipe, const image::Pixels& pixels, size_t pixel, int channel) {
  const size_t count = static_cast<size_t>(pixels.width) * pixels.height;
  return recipe.layout == Layout::kNchw ? channel * count + pixel : pixel * pixels.channels + channel;
}

void ExpectTheFormula(const Recipe& recipe) {
  const image::Pixels pixels = EveryLevel(recipe.geometry.channel_count());
  std::vector<float> values(pixels.data.size());
  ASSERT_EQ(InputBytes(recipe, {pixels.width, pixels.height}), values.size() * sizeof(float));
  WriteInput(recipe, pixels, reinterpret_cast<std::byte*>(values.data()));
  for (size_t i = 0; i < pixels.data.size(); ++i) {
    const int c = static_cast<int>(i) % pixels.channels;
    const auto expected =
        static_cast<float>((pixels.data[i] * recipe.scale - recipe.mean[c]) / recipe.std[c]);
    const float got = values[PlaceOf(recipe, pixels, i / pixels.channels, c)];
    ASSERT_EQ(std::memcmp(&got, &expected, sizeof(float)), 0) << got << " for " << expected << " at " << i;
  }
}

TEST(WriteInput, IsTheFormulaInDoubleRoundedOnceForEveryLevel) {
  image::testing::OnEachTarget([] {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      Recipe recipe{.layout = layout};
      ExpectTheFormula(recipe);
      recipe.scale = 1 / 255.0;
      recipe.mean = {0.485, 0.456, 0.406};
      recipe.std = {0.229, 0.224, 0.225};
      ExpectTheFormula(recipe);
      recipe.scale = 0.00784313725490196;
      recipe.mean = recipe.std = {1, 1, 1};
      ExpectTheFormula(recipe);
      recipe.scale = 1 / 255.0;  // level 255 cancels to what double leaves of it: only the table has that
      ExpectTheFormula(recipe);
      recipe.scale = 1e300;  // beyond float
      ExpectTheFormula(recipe);
      recipe.scale = -1e-300;
      recipe.mean = {0, 0, 0};
      ExpectTheFormula(recipe);
    }
  });
}

TEST(WriteInput, IsTheFormulaForAnyNumbers) {
  Random random = Seed(5).MakeRandom();
  for (int i = 0; i < 300; ++i) {
    Recipe recipe{.layout = i % 2 == 0 ? Layout::kNchw : Layout::kNhwc, .scale = random.Uniform(0.001, 2)};
    if (i % 3 == 0) recipe.geometry.channels = Channels::kGrey;
    for (double& mean : recipe.mean) mean = random.Uniform(0, 255) * recipe.scale;
    for (double& std : recipe.std) std = random.Uniform(0.01, 3);
    ExpectTheFormula(recipe);
  }
}

TEST(WriteInput, LeavesTheBytesOfAUint8InputAsTheyAre) {
  for (const Channels channels : {Channels::kRgb, Channels::kGrey}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      Recipe recipe{.layout = layout, .datatype = ElementType::kUint8};
      recipe.geometry.channels = channels;
      const image::Pixels pixels = EveryLevel(recipe.geometry.channel_count());
      std::vector<uint8_t> bytes(InputBytes(recipe, {pixels.width, pixels.height}));
      ASSERT_EQ(bytes.size(), pixels.data.size());
      WriteInput(recipe, pixels, reinterpret_cast<std::byte*>(bytes.data()));
      for (size_t i = 0; i < pixels.data.size(); ++i) {
        const int c = static_cast<int>(i) % pixels.channels;
        ASSERT_EQ(bytes[PlaceOf(recipe, pixels, i / pixels.channels, c)], pixels.data[i]);
      }
    }
  }
}

}  // namespace
}  // namespace weir::dataset
