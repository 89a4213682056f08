// The verdicts over real and broken files that lie beside the checkout.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "data/decode.h"
#include "data/testing/shared_files.h"

namespace weir::data {
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
    const bool wanted = row[1] == "valid" || row[1] == "placeholder";
    EXPECT_EQ(decoded.has_value(), wanted) << (decoded ? "accepted" : decoded.error().detail);
    if (row[1] == "bomb") {
      ASSERT_FALSE(decoded);
      EXPECT_EQ(decoded.error().reason, RejectReason::kTooManyPixels);
    }
  }
}

TEST(BadImages, NoGoodPhotoIsRejected) {
  const auto folder = testing::SharedFolder("data/images");
  if (!folder) GTEST_SKIP() << "no shared data: set WEIR_SHARED to the folder that has data/images";
  Decoder decoder;
  int photos = 0;
  for (const std::string& path : testing::FilesIn(*folder)) {
    if (!path.ends_with(".JPEG")) continue;
    ++photos;
    const Accepted<Pixels> decoded = DecodeWhole(decoder, MustRead(path), {});
    EXPECT_TRUE(decoded) << path << ": " << (decoded ? "" : decoded.error().detail);
  }
  EXPECT_GE(photos, 150);
}

}  // namespace
}  // namespace weir::data
