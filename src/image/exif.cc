#include "image/exif.h"

#include "image/formats.h"

namespace weir::image {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;
constexpr size_t kEntryBytes = 12;

}  // namespace

// Exif 2.3 section 4.6: header (order, 42, offset of the first directory), then a count and entries of tag,
// type, count, value.
int ExifOrientation(std::span<const uint8_t> tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I' && tiff[1] == 'I';
  if (!little && !(tiff[0] == 'M' && tiff[1] == 'M')) return 1;
  const auto read16 = [&](size_t at) { return little ? LittleEndian16(&tiff[at]) : BigEndian16(&tiff[at]); };
  const auto read32 = [&](size_t at) { return little ? LittleEndian32(&tiff[at]) : BigEndian32(&tiff[at]); };

  const size_t directory = read32(4);
  if (read16(2) != 42 || directory > tiff.size() - 2) return 1;
  const size_t entries = read16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (read16(entry) != kOrientationTag) continue;
    const uint32_t value = read16(entry + 2) == kShort ? read16(entry + 8) : read32(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace weir::image
