#include "image/encode.h"

#include <gtest/gtest.h>

#include <cmath>

#include "image/testing/pictures.h"

namespace weir::image {
namespace {

double MeanDifference(const Pixels& a, const Pixels& b) {
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += std::abs(a.data[i] - b.data[i]);
  return sum / static_cast<double>(a.data.size());
}

Pixels MustDecode(const std::string& encoded) {
  Decoder decoder;
  Pixels pixels;
  const auto info = ReadPictureInfo(testing::AsBytes(encoded), {});
  EXPECT_TRUE(info);
  EXPECT_TRUE(
      decoder.Decode(testing::AsBytes(encoded), *info, {0, 0, info->width, info->height}, {}, pixels));
  return pixels;
}

TEST(Encode, AJpegShowsThePictureInEverySampling) {
  const Pixels photo = testing::MakePhoto(101, 67, 3, 1);
  for (const Sampling sampling : {Sampling::k444, Sampling::k422, Sampling::k420}) {
    const auto jpeg = EncodeJpeg(photo, {.quality = 95, .sampling = sampling});
    ASSERT_TRUE(jpeg);
    EXPECT_LT(MeanDifference(MustDecode(*jpeg), photo), 8);
  }
}

TEST(Encode, TheSamePixelsGiveTheSameBytes) {
  const Pixels photo = testing::MakePhoto(101, 67, 3, 1);
  EXPECT_EQ(*EncodeJpeg(photo, {}), *EncodeJpeg(photo, {}));
  EXPECT_EQ(*EncodePng(photo), *EncodePng(photo));
}

TEST(Encode, GreyStaysGrey) {
  const Pixels photo = testing::MakePhoto(50, 40, 1, 1);
  EXPECT_EQ(MustDecode(*EncodeJpeg(photo, {})).channels, 1);
  EXPECT_EQ(MustDecode(*EncodePng(photo)).data, photo.data);
}

TEST(Encode, ShapesThatCannotBeEncodedAreRefused) {
  const Pixels photo = testing::MakePhoto(10, 10, 3, 1);
  Pixels wrong = photo;
  wrong.width = 11;
  Pixels huge{70'000, 1, 1, std::vector<uint8_t>(70'000)};
  for (const Pixels& bad : {wrong, huge, Pixels{}}) {
    ASSERT_FALSE(EncodeJpeg(bad, {}));
    EXPECT_EQ(EncodeJpeg(bad, {}).error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(EncodePng(wrong));
  EXPECT_TRUE(EncodePng(huge));
  EXPECT_FALSE(EncodeJpeg(photo, {.quality = 0}));
  EXPECT_FALSE(EncodeJpeg(photo, {.quality = 101}));
}

}  // namespace
}  // namespace weir::image
