// A JPEG's header, read by walking its segments: no decoder is set up and no memory is asked for.
#include <fmt/format.h>

#include "image/exif.h"
#include "image/formats.h"

namespace weir::image {
namespace {

constexpr uint8_t kSos = 0xDA;
constexpr uint8_t kEoi = 0xD9;
constexpr uint8_t kSoi = 0xD8;
constexpr uint8_t kApp1 = 0xE1;

bool IsFrameHeader(uint8_t marker) {
  const bool table = marker == 0xC4 || marker == 0xC8 || marker == 0xCC;  // DHT, JPG, DAC share the range
  return marker >= 0xC0 && marker <= 0xCF && !table;
}
// Baseline, extended and progressive, with Huffman or arithmetic coding; not lossless, not hierarchical.
bool IsDecodable(uint8_t frame) {
  return frame == 0xC0 || frame == 0xC1 || frame == 0xC2 || frame == 0xC9 || frame == 0xCA;
}
bool HasNoLength(uint8_t marker) { return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7); }

// `segment` begins after the two bytes of its length.
Accepted<PictureInfo> ReadFrame(uint8_t marker, std::span<const uint8_t> segment) {
  if (!IsDecodable(marker)) {
    return Unsupported(
        fmt::format("JPEG frame type 0x{:02x} (lossless or hierarchical) is not decoded", marker));
  }
  if (segment.size() < 6) return Damaged("JPEG frame header is too short");
  const int precision = segment[0];
  const size_t components = segment[5];
  if (segment.size() != 6 + 3 * components) return Damaged("JPEG frame header has a wrong length");
  if (precision != 8) return Unsupported(fmt::format("JPEG of {} bits a sample is not decoded", precision));
  if (components != 1 && components != 3 && components != 4) {
    return Unsupported(fmt::format("JPEG of {} components is not decoded", components));
  }
  return MakeInfo(PictureFormat::kJpeg, BigEndian16(&segment[3]), BigEndian16(&segment[1]), 1);
}

int OrientationIn(std::span<const uint8_t> app1) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  if (app1.size() < kExif.size() || std::memcmp(app1.data(), kExif.data(), kExif.size()) != 0) return 0;
  return ExifOrientation(app1.subspan(kExif.size()));
}

}  // namespace

Accepted<PictureInfo> ReadJpegInfo(std::span<const std::byte> encoded) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size());
  PictureInfo info;
  int orientation = 0;  // 0: no EXIF yet; the first block counts
  size_t at = 2;
  while (true) {
    // As libjpeg does: stray bytes before a marker are passed over here, and warned of when the picture is
    // decoded.
    while (at < bytes.size() && bytes[at] != 0xFF) ++at;
    while (at < bytes.size() && bytes[at] == 0xFF) ++at;
    if (at >= bytes.size()) return Damaged("JPEG ends inside its header");
    const uint8_t marker = bytes[at++];
    if (marker == 0 || HasNoLength(marker)) continue;
    if (marker == kSoi || marker == kEoi)
      return Damaged("JPEG has no picture before its next start or end marker");
    if (marker == kSos) break;

    const size_t length = bytes.size() - at >= 2 ? BigEndian16(&bytes[at]) : 0;
    if (length < 2 || length > bytes.size() - at) return Damaged("JPEG ends inside its header");
    const auto segment = bytes.subspan(at + 2, length - 2);
    if (IsFrameHeader(marker)) info = TRY(ReadFrame(marker, segment));
    if (marker == kApp1 && orientation == 0) orientation = OrientationIn(segment);
    at += length;
  }
  if (info.width == 0) return Damaged("JPEG has a scan before any frame header");
  info.orientation = orientation == 0 ? 1 : orientation;
  return info;
}

}  // namespace weir::image
