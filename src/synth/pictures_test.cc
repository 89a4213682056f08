#include "synth/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <span>
#include <thread>
#include <vector>

#include "image/decode.h"

namespace weir::synth {
namespace {

constexpr Seed kSeed(7);

MadePicture Draw(Seed seed, int64_t index) {
  Result<MadePicture> picture = DrawPicture(seed, index);
  EXPECT_TRUE(picture.has_value());
  return picture.value_or(MadePicture{});
}

TEST(DrawPicture, GivesTheSameBytesWhicheverThreadDrawsItAndInWhateverOrder) {
  constexpr int kCount = 12;
  std::vector<std::string> forward(kCount), backward(kCount);
  {
    const std::jthread one([&] {
      for (int i = 0; i < kCount; ++i) forward[i] = Draw(kSeed, i).jpeg;
    });
    const std::jthread two([&] {
      for (int i = kCount - 1; i >= 0; --i) backward[i] = Draw(kSeed, i).jpeg;
    });
  }
  EXPECT_EQ(forward, backward);
}

TEST(DrawPicture, DrawsOtherPicturesForAnotherSeedAndAnotherIndex) {
  EXPECT_NE(Draw(kSeed, 3).jpeg, Draw(Seed(8), 3).jpeg);
  EXPECT_NE(Draw(kSeed, 3).jpeg, Draw(kSeed, 3 + ClassCount()).jpeg);
}

TEST(DrawPicture, HasEachClassOnceInAnyRunOfAsManyPictures) {
  std::multiset<int> labels;
  for (int i = 5; i < 5 + ClassCount(); ++i) labels.insert(Draw(kSeed, i).label);
  for (int label = 0; label < ClassCount(); ++label) EXPECT_EQ(labels.count(label), 1U) << label;
}

TEST(DrawPicture, NamesTheFileByItsIndex) { EXPECT_EQ(Draw(kSeed, 17).name, "000017.jpg"); }

TEST(DrawPicture, CostsAboutTheBytesOfAPhoto) {
  double bytes = 0, pixels = 0;
  for (int i = 0; i < 2 * ClassCount(); ++i) {
    const MadePicture picture = Draw(kSeed, i);
    const auto info = image::ReadPictureInfo(std::as_bytes(std::span(picture.jpeg)), {});
    ASSERT_TRUE(info.has_value());
    EXPECT_GE(std::min(info->width, info->height), 320);
    EXPECT_LE(std::max(info->width, info->height), 640);
    bytes += static_cast<double>(picture.jpeg.size());
    pixels += info->width * info->height;
  }
  const double bytes_of_500_by_375 = bytes / pixels * 500 * 375;
  EXPECT_GT(bytes_of_500_by_375, 100e3);
  EXPECT_LT(bytes_of_500_by_375, 120e3);
}

TEST(DrawPicture, GivesAPictureThatDecodesWithoutComplaint) {
  const MadePicture picture = Draw(kSeed, 0);
  const auto bytes = std::as_bytes(std::span(picture.jpeg));
  const auto info = image::ReadPictureInfo(bytes, {});
  ASSERT_TRUE(info.has_value());
  image::Decoder decoder;
  image::Pixels pixels;
  EXPECT_TRUE(decoder.Decode(bytes, *info, {0, 0, info->width, info->height}, {}, pixels).has_value());
  EXPECT_EQ(pixels.channels, 3);
}

TEST(ClassName, IsItsOwnForEachOfAtLeastTwentyClasses) {
  std::set<std::string> names;
  for (int label = 0; label < ClassCount(); ++label) names.insert(ClassName(label));
  EXPECT_GE(ClassCount(), 20);
  EXPECT_EQ(std::ssize(names), ClassCount());
  EXPECT_EQ(ClassName(0), "red and yellow stripes");
}

}  // namespace
}  // namespace weir::synth
