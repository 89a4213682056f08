// A JPEG's header, read by walking its segments: no decoder is set up and no memory is asked for.
#include <fmt/format.h>

#include <optional>
#include <utility>

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

// Tells what the APP1 segments tell of the orientation.
struct JpegOrientations {
  bool has_exif = false;  // the first block counts
  std::optional<int> exif, xmp;

  void Take(std::span<const uint8_t> app1) {
    constexpr std::string_view kExif("Exif\0\0", 6), kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
    const std::string_view text(reinterpret_cast<const char*>(app1.data()), app1.size());
    if (text.starts_with(kExif) && !std::exchange(has_exif, true)) exif = FindExifOrientation(app1);
    if (text.starts_with(kXmp) && !xmp) xmp = FindXmpOrientation(text.substr(kXmp.size()));
  }
};

}  // namespace

Accepted<PictureInfo> ReadJpegInfo(std::span<const std::byte> encoded) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size());
  PictureInfo info;
  JpegOrientations orientations;
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
    if (marker == kApp1) orientations.Take(segment);
    at += length;
  }
  if (info.width == 0) return Damaged("JPEG has a scan before any frame header");
  info.orientation = orientations.exif.value_or(orientations.xmp.value_or(1));
  return info;
}

}  // namespace weir::image
