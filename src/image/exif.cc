#include "image/exif.h"

#include <cstring>

#include "image/formats.h"

namespace weir::image {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;
constexpr size_t kEntryBytes = 12;

}  // namespace

// Exif 2.3 section 4.6: header (order, 42, offset of the first directory), then a count and entries of tag,
// type, count, value.
std::optional<int> FindExifOrientation(std::span<const uint8_t> exif) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  std::span<const uint8_t> tiff = exif;
  if (tiff.size() > kPrefix.size() && std::memcmp(tiff.data(), kPrefix.data(), kPrefix.size()) == 0)
    tiff = tiff.subspan(kPrefix.size());
  if (tiff.size() < 8) return std::nullopt;
  const bool little = tiff[0] == 'I' && tiff[1] == 'I';
  if (!little && !(tiff[0] == 'M' && tiff[1] == 'M')) return std::nullopt;
  const auto read16 = [&](size_t at) { return little ? LittleEndian16(&tiff[at]) : BigEndian16(&tiff[at]); };
  const auto read32 = [&](size_t at) { return little ? LittleEndian32(&tiff[at]) : BigEndian32(&tiff[at]); };

  const size_t directory = read32(4);
  if (read16(2) != 42 || directory > tiff.size() - 2) return std::nullopt;
  const size_t entries = read16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return std::nullopt;
    if (read16(entry) != kOrientationTag) continue;
    const uint32_t value = read16(entry + 2) == kShort ? read16(entry + 8) : read32(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return std::nullopt;
}

int ExifOrientation(std::span<const uint8_t> exif) { return FindExifOrientation(exif).value_or(1); }

// As an attribute, tiff:Orientation="6", or as an element.
std::optional<int> FindXmpOrientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = xmp.find(kName); at != xmp.npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    const std::string_view begins[] = {"=\"", "='", ">"};
    for (const std::string_view begin : begins) {
      if (!rest.starts_with(begin) || rest.size() == begin.size()) continue;
      const char digit = rest[begin.size()];
      if (digit >= '0' && digit <= '9') return digit >= '1' && digit <= '8' ? digit - '0' : 1;
    }
  }
  return std::nullopt;
}

}  // namespace weir::image
