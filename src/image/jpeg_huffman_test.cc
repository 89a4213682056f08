// Our reading of Huffman codes against libjpeg's own, which decodes where damage is tolerated.
#include "image/jpeg_huffman.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/file.h"
#include "image/decode.h"
#include "image/jpeg_private.h"
#include "image/testing/pictures.h"
#include "image/testing/shared_files.h"

namespace weir::image {
namespace {

using testing::AsBytes;
using testing::WriteJpeg;

Accepted<Pixels> Decode(std::string_view jpeg, bool tolerate) {
  const DecodeOptions options{.tolerate_damage = tolerate};
  const PictureInfo info = TRY(ReadPictureInfo(AsBytes(jpeg), options));
  Pixels pixels;
  TRY_STATUS(Decoder().Decode(AsBytes(jpeg), info, {0, 0, info.width, info.height}, options, pixels));
  return pixels;
}

// Whether ours takes it, and gives the pixels of libjpeg.
void ExpectSame(std::string_view jpeg, const std::string& words) {
  const auto ours = Decode(jpeg, false), theirs = Decode(jpeg, true);
  ASSERT_TRUE(ours) << words << ": " << ours.error().detail;
  ASSERT_TRUE(theirs) << words;
  EXPECT_TRUE(ours->data == theirs->data) << words;
}

// Every level as likely as any other, pixel by pixel: the largest coefficients, and the longest codes.
Pixels Noise(int width, int height, uint64_t seed) {
  Pixels pixels{width, height, 3, {}};
  std::mt19937_64 random(seed);
  for (int i = 0; i < width * height * 3; ++i) pixels.data.push_back(static_cast<uint8_t>(random()));
  return pixels;
}

TEST(JpegHuffman, IsUsedWithTheLibraryThatIsInstalled) { EXPECT_TRUE(HasKnownJpegStructures()); }

TEST(JpegHuffman, GivesWhatLibjpegGives) {
  for (const int quality : {1, 50, 85, 100}) {
    for (const int restart_rows : {0, 1}) {
      const testing::JpegShape shape{.quality = quality, .restart_rows = restart_rows};
      const std::string words = std::to_string(quality) + ", " + std::to_string(restart_rows);
      // More than the buffer holds at quality 50 and over.
      ExpectSame(WriteJpeg(Noise(500, 301, static_cast<uint64_t>(quality)), shape), "noise " + words);
      ExpectSame(WriteJpeg(testing::MakePhoto(317, 203, 3, quality), shape), "photo " + words);
    }
  }
}

// Codes of one bit, as a picture of one colour gets them, and none of fewer than sixteen; blocks with nothing
// but their mean, and such as end with their last coefficient.
TEST(JpegHuffman, GivesWhatLibjpegGivesWhateverTheCodes) {
  using testing::JpegCodes;
  const Pixels flat{70, 50, 3, std::vector<uint8_t>(70 * 50 * 3, 90)};
  Pixels dots = flat;
  for (size_t i = 0; i < dots.data.size(); i += 997) dots.data[i] = 255;
  for (const JpegCodes codes : {JpegCodes::kStandard, JpegCodes::kOwn, JpegCodes::kLong}) {
    for (const int quality : {3, 75, 100}) {
      for (const auto& luma : {std::array{1, 1}, std::array{2, 1}, std::array{1, 2}, std::array{2, 2}}) {
        const testing::JpegShape shape{.luma = luma, .quality = quality, .codes = codes};
        const std::string words = std::to_string(static_cast<int>(codes)) + ", " + std::to_string(quality) +
                                  ", " + std::to_string(luma[0]) + std::to_string(luma[1]);
        ExpectSame(WriteJpeg(Noise(75, 41, 6), shape), "noise " + words);
        ExpectSame(WriteJpeg(testing::MakePhoto(61, 87, 3, 2), shape), "photo " + words);
        ExpectSame(WriteJpeg(flat, shape), "flat " + words);
        ExpectSame(WriteJpeg(dots, shape), "dots " + words);
      }
      const testing::JpegShape grey{.colour = testing::JpegColour::kGrey, .quality = quality, .codes = codes};
      ExpectSame(WriteJpeg(testing::MakePhoto(61, 87, 1, 2), grey), "grey " + std::to_string(quality));
    }
  }
}

TEST(JpegHuffman, GivesWhatLibjpegGivesForPhotos) {
  const auto folder = testing::SharedFolder("data/images");
  if (!folder) GTEST_SKIP() << "no shared data: set WEIR_SHARED to the folder that has data/images";
  for (const std::string& path : testing::FilesIn(*folder)) {
    if (!path.ends_with("JPEG") && !path.ends_with("jpg")) continue;
    const Bytes photo = ReadFile(path, 100 << 20).value();
    ExpectSame(photo.text(), path);
  }
}

// T.81, B.1.1.2: any marker may be preceded by 0xff.
TEST(JpegHuffman, MarkersMayHaveFillBytesBeforeThem) {
  std::string jpeg = WriteJpeg(testing::MakePhoto(64, 80, 3, 1), {.restart_rows = 1});
  const auto fill = [&jpeg](std::string_view marker) {
    const size_t at = jpeg.rfind(marker);
    ASSERT_NE(at, jpeg.npos);
    jpeg.insert(at, 3, '\xff');
  };
  for (const std::string_view marker : {"\xff\xd0", "\xff\xd2", "\xff\xd9"}) fill(marker);
  ExpectSame(jpeg, "filled");
}

// Rejects what libjpeg decodes with a warning, and nothing else, but for bytes that it forgets to
// warn of.
TEST(JpegHuffman, RejectsWhatLibjpegWarnsOf) {
  std::mt19937 random(5);
  const auto warnings = [](const std::string& jpeg) {
    JpegErrors errors;
    errors.strict = false;
    jpeg_decompress_struct cinfo{};
    cinfo.err = &errors.manager;
    const auto decode = [](void* argument) {
      jpeg_decompress_struct& d = *static_cast<jpeg_decompress_struct*>(argument);
      jpeg_start_decompress(&d);
      static JSAMPLE line[3 * 64];
      JSAMPROW row = line;
      while (d.output_scanline < d.output_height) jpeg_read_scanlines(&d, &row, 1);
      jpeg_finish_decompress(&d);
    };
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&cinfo, TRUE);
    const bool done = Guard(errors, decode, &cinfo);
    jpeg_destroy_decompress(&cinfo);
    return done ? errors.manager.num_warnings : 1;
  };
  int rejected = 0, also_shown = 0;
  for (const int restart_rows : {0, 1}) {
    const std::string good = WriteJpeg(testing::MakePhoto(64, 64, 3, 4), {.restart_rows = restart_rows});
    for (int round = 0; round < 400; ++round) {
      std::string bad = good;
      const size_t bit = good.size() * 4 + random() % (good.size() * 4 - 16);
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      const auto ours = Decode(bad, false);
      if (warnings(bad) > 0) {
        EXPECT_FALSE(ours) << restart_rows << ", bit " << bit;
        rejected += 1;
      } else if (ours) {
        EXPECT_TRUE(ours->data == Decode(bad, true)->data) << restart_rows << ", bit " << bit;
        also_shown += 1;
      }
    }
  }
  EXPECT_GT(rejected, 100);
  EXPECT_GT(also_shown, 20);
}

}  // namespace
}  // namespace weir::image
