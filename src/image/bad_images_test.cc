// The verdicts over real and broken files that lie beside the checkout.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "image/decode.h"
#include "image/testing/shared_files.h"

namespace weir::image {
namespace {

Accepted<Pixels> DecodeWhole(Decoder& decoder, const Bytes& bytes, const DecodeOptions& options) {
  const PictureInfo info = TRY(ReadPictureInfo(bytes.span(), options));
  Pixels pixels;
  TRY_STATUS(decoder.Decode(bytes.span(), info, {0, 0, info.width, info.height}, options, pixels));
  return pixels;
}

Bytes MustRead(const std::string& path) {
  auto bytes = ReadFile(path, 1 << 30);
  if (!bytes) {
    ADD_FAILURE() << bytes.error().message;
    return {};
  }
  return *std::move(bytes);
}

TEST(BadImages, EveryFileGetsTheVerdictOfItsManifest) {
  const auto folder = testing::SharedFolder("data/bad-images");
  if (!folder) GTEST_SKIP() << "no shared data: set WEIR_SHARED to the folder that has data/bad-images";
  Decoder decoder;
  const auto rows = testing::ReadCsv(*folder + "/manifest.csv");
  ASSERT_GE(rows.size(), 72u);
  for (const auto& row : rows) {
    SCOPED_TRACE(row[0]);
    const Accepted<Pixels> decoded = DecodeWhole(decoder, MustRead(*folder + "/" + row[0]), {});
    // All that decides about its pixels is there.
    const bool whole = row[0] == "partial_no_end_marker.jpg";
    const bool wanted = row[1] == "valid" || row[1] == "placeholder" || whole;
    EXPECT_EQ(decoded.has_value(), wanted) << (decoded ? "accepted" : decoded.error().detail);
    if (row[1] == "bomb") {
      ASSERT_FALSE(decoded);
      EXPECT_EQ(decoded.error().reason, RejectReason::kTooManyPixels);
    }
  }
}

// Every photo of data/images, none when it is not there.
std::vector<std::string> Photos() {
  std::vector<std::string> photos;
  if (const auto folder = testing::SharedFolder("data/images")) photos = testing::FilesIn(*folder);
  std::erase_if(photos, [](const std::string& path) { return !path.ends_with(".JPEG"); });
  return photos;
}

// Whether the file is rejected when only the middle seven eighths of its short side are wanted, as for a
// centre crop.
bool IsRejected(Decoder& decoder, std::span<const std::byte> encoded) {
  const auto info = ReadPictureInfo(encoded, {});
  if (!info) return true;
  const int side = std::max(1, std::min(info->width, info->height) * 7 / 8);
  Pixels pixels;
  return !decoder.Decode(encoded, *info, {(info->width - side) / 2, (info->height - side) / 2, side, side},
                         {}, pixels);
}

TEST(BadImages, DamageInAPhotoIsFound) {
  const auto photos = Photos();
  if (photos.empty()) GTEST_SKIP() << "no shared data: set WEIR_SHARED to the folder that has data/images";
  std::mt19937_64 random(1);
  Decoder decoder;
  int flipped = 0;
  int zeroed = 0;
  int large = 0;
  for (const std::string& path : photos) {
    const Bytes good = MustRead(path);
    const size_t size = good.size();
    for (const size_t cut : {random() % size, random() % size, size - 3 - random() % 4}) {
      EXPECT_TRUE(IsRejected(decoder, good.span().first(cut))) << path << " cut to " << cut << " of " << size;
    }
    std::vector<std::byte> bad(good.span().begin(), good.span().end());
    for (int i = 0; i < 8; ++i) {
      const size_t bit = size * 4 + random() % (size * 4);
      bad[bit / 8] ^= std::byte(1 << bit % 8);
    }
    flipped += IsRejected(decoder, bad) ? 1 : 0;
    if (size < 8192) continue;
    ++large;
    bad.assign(good.span().begin(), good.span().end());
    std::fill_n(bad.begin() + static_cast<ptrdiff_t>(size / 2 - 2048), 4096, std::byte(0));
    zeroed += IsRejected(decoder, bad) ? 1 : 0;
  }
  EXPECT_GE(flipped, 0.60 * static_cast<double>(photos.size()));
  EXPECT_GE(zeroed, 0.98 * large);
}

TEST(BadImages, NoGoodPhotoIsRejected) {
  const auto photos = Photos();
  if (photos.empty()) GTEST_SKIP() << "no shared data: set WEIR_SHARED to the folder that has data/images";
  EXPECT_GE(photos.size(), 150u);
  Decoder decoder;
  for (const std::string& path : photos) {
    const Accepted<Pixels> decoded = DecodeWhole(decoder, MustRead(path), {});
    EXPECT_TRUE(decoded) << path << ": " << (decoded ? "" : decoded.error().detail);
  }
}

}  // namespace
}  // namespace weir::image
