// Pictures and encoded files for tests and fuzz seeds, the same for the same arguments.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/decode.h"

namespace weir::image::testing {

// Smooth colours, edges and noise: what a codec finds neither trivial nor random.
Pixels MakePhoto(int width, int height, int channels, uint64_t seed);

inline std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

enum class JpegColour { kGrey, kYcc, kRgb, kCmyk, kYcck };
enum class JpegCodes { kStandard, kOwn, kLong };  // the standard's; made for the picture; all of 16 bits
struct JpegShape {
  JpegColour colour = JpegColour::kYcc;
  std::array<int, 2> luma{2, 2};  // sampling factors, horizontal and vertical, of the first component
  std::array<int, 2> chroma{1, 1};
  int quality = 85;
  bool progressive = false;
  bool separate_scans = false;  // sequential, one scan for each component
  bool arithmetic = false;
  JpegCodes codes = JpegCodes::kStandard;
  int restart_rows = 0;
  std::string exif;     // an APP1 segment's contents
  bool coarse = false;  // progressive, and its fine coefficients never come
};
// Four-component shapes take MakePhoto's colours as inks stored inverted, with black 255 minus the least of
// them.
std::string WriteJpeg(const Pixels& pixels, const JpegShape& shape);

// "Exif\0\0" and a block that says `orientation`, in either byte order.
enum class ByteOrder { kLittle, kBig };
std::string ExifSegment(int orientation, ByteOrder order);
std::string ExifBlock(int orientation, ByteOrder order);

struct PngShape {
  int depth = 8;
  int colour_type = 2;  // PNG's: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA
  bool interlaced = false;
  std::string transparent;       // tRNS contents: alphas of a palette; empty: none
  std::vector<uint8_t> palette;  // RGB triples
  std::string exif;              // eXIf contents
};
// `rows` are as PNG stores them: packed samples, 16 bits big-endian.
std::string WritePng(int width, int height, std::string_view rows, const PngShape& shape);

struct TiffShape {
  int bits = 8;
  int samples = 3;  // 1 grey or palette, 3 RGB, 4 RGBA
  int compression = 1;
  int photometric = 2;
  int rows_per_strip = 16;
  int tile = 0;  // side of square tiles; 0: strips
  int orientation = 1;
  bool planar = false;
  bool alpha_premultiplied = false;
};
std::string WriteTiff(int width, int height, std::string_view samples, const TiffShape& shape);

struct GifFrame {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  bool interlaced = false;
  int transparent = -1;
  std::string indices;
};
std::string WriteGif(int width, int height, std::span<const uint8_t> palette,
                     std::span<const GifFrame> frames);

// 24 bits, rows from the bottom up.
std::string WriteBmp(const Pixels& pixels);

struct WebpShape {
  bool lossless = true;
  std::string alpha;  // one byte a pixel; empty: opaque
};
std::string WriteWebp(const Pixels& pixels, const WebpShape& shape);

}  // namespace weir::image::testing
