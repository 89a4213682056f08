// BMP by stb_image, which reads zeros past the end of a cut file: what it will read is held against the
// file's size first. But for palettes: it takes OS/2's for four colours shorter than they are, and colours
// that a palette lacks from memory that nobody has written.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "image/formats.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_SIMD
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace weir::image {
namespace {

constexpr size_t kFileHeaderBytes = 14;
constexpr uint32_t kPlain = 0;
constexpr uint32_t kBitFields = 3;

struct Header {
  uint32_t size = 0;  // of the second header; 12 is OS/2's, with 16-bit fields
  int64_t width = 0;
  int64_t height = 0;  // its sign tells the order of the rows
  uint32_t bits = 0;
  uint32_t compression = kPlain;
  uint32_t data_at = 0;
};

Accepted<Header> ReadHeader(std::span<const uint8_t> bytes) {
  if (bytes.size() < kFileHeaderBytes + 12) return Damaged("BMP ends inside its header");
  Header header{.size = LittleEndian32(&bytes[14]), .data_at = LittleEndian32(&bytes[10])};
  if (header.size == 12) {
    header.width = LittleEndian16(&bytes[18]);
    header.height = LittleEndian16(&bytes[20]);
    header.bits = LittleEndian16(&bytes[24]);
    return header;
  }
  if (header.size < 40 || header.size > bytes.size() - kFileHeaderBytes)
    return Damaged("BMP ends inside its header");
  header.width = static_cast<int32_t>(LittleEndian32(&bytes[18]));
  header.height = static_cast<int32_t>(LittleEndian32(&bytes[22]));
  header.bits = LittleEndian16(&bytes[28]);
  header.compression = LittleEndian32(&bytes[30]);
  return header;
}

std::span<const uint8_t> Unsigned(std::span<const std::byte> encoded) {
  return {reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size()};
}

// Rows are padded to four bytes.
uint64_t RowBytes(const Header& header) {
  return (static_cast<uint64_t>(header.width) * header.bits + 31) / 32 * 4;
}

uint64_t DataBytes(const Header& header) {
  return RowBytes(header) * static_cast<uint64_t>(std::abs(header.height));
}

// Blue, green, red, and but for OS/2 a byte more.
struct Palette {
  const uint8_t* entries = nullptr;
  size_t count = 0;
  size_t entry_bytes = 0;
};

Accepted<Palette> ReadPalette(const Header& header, std::span<const uint8_t> bytes) {
  Palette palette;
  const size_t begin = kFileHeaderBytes + header.size;
  const size_t end = std::min<size_t>(header.data_at, bytes.size());
  palette.entry_bytes = header.size == 12 ? 3 : 4;
  palette.entries = bytes.data() + begin;
  if (end > begin) palette.count = std::min((end - begin) / palette.entry_bytes, size_t{1} << header.bits);
  if (palette.count == 0) return Damaged("BMP has no room for its palette");
  return palette;
}

// A picture of up to 256 colours. What a cut file lacks is of colour 0, and a colour that the palette lacks
// is black, where that is tolerated.
Accepted<void> DecodeColours(const Header& header, const DecodeJob& job, Pixels& out) {
  if (header.compression != kPlain || (header.bits != 1 && header.bits != 4 && header.bits != 8)) {
    return Unsupported(
        fmt::format("BMP of {} bits a pixel, compression {}", header.bits, header.compression));
  }
  const std::span<const uint8_t> bytes = Unsigned(job.encoded);
  const Palette palette = TRY(ReadPalette(header, bytes));
  const Window& window = job.window;
  ShapeOutput(window, 3, out);
  for (int y = 0; y < job.info.height; ++y) {
    const int row = header.height < 0 ? y : job.info.height - 1 - y;
    const uint64_t at = header.data_at + RowBytes(header) * static_cast<uint64_t>(row);
    const bool shown = y >= window.y && y < window.y + window.height;
    uint8_t* to = shown ? OutputRow(out, y - window.y) : nullptr;
    for (int x = 0; x < job.info.width; ++x) {
      const uint64_t bit = static_cast<uint64_t>(x) * header.bits;
      const uint32_t byte = at + bit / 8 < bytes.size() ? bytes[at + bit / 8] : 0;
      const uint32_t colour = byte >> (8 - header.bits - bit % 8) & ((1u << header.bits) - 1);
      const bool known = colour < palette.count;
      if (!known && !job.tolerate_damage) {
        return Damaged(fmt::format("BMP has colour {}, and its palette {} colours", colour, palette.count));
      }
      if (!shown || x < window.x || x >= window.x + window.width) continue;
      for (int c = 2; c >= 0; --c)
        *to++ = known ? palette.entries[colour * palette.entry_bytes + static_cast<size_t>(c)] : uint8_t{0};
    }
  }
  return {};
}

struct Free {
  void operator()(uint8_t* pixels) const { stbi_image_free(pixels); }
};

}  // namespace

Accepted<PictureInfo> ReadBmpInfo(std::span<const std::byte> encoded) {
  const Header header = TRY(ReadHeader(Unsigned(encoded)));
  if (header.width < 0) return Damaged("BMP has a negative width");
  return MakeInfo(PictureFormat::kBmp, static_cast<uint64_t>(header.width),
                  static_cast<uint64_t>(std::abs(header.height)), 1);
}

Accepted<void> DecodeBmp(const DecodeJob& job, Scratch&, Pixels& out) {
  const Header header = TRY(ReadHeader(Unsigned(job.encoded)));
  if (header.compression != kPlain && header.compression != kBitFields) {
    return Unsupported(fmt::format("BMP compression {}", header.compression));
  }
  const bool cut = header.data_at > job.size() || DataBytes(header) > job.size() - header.data_at;
  if (cut && !job.tolerate_damage) return Damaged("BMP is shorter than its header says");
  if (header.bits <= 8) return DecodeColours(header, job, out);
  TRY_STATUS(CheckDecoderMemory(uint64_t{4} * job.info.width * job.info.height));

  // The fourth byte of a plain 32-bit pixel is filling; only a bit mask makes it alpha.
  const int components = header.compression == kBitFields ? 4 : 3;
  const int size = static_cast<int>(std::min<size_t>(job.size(), std::numeric_limits<int>::max()));
  int width = 0;
  int height = 0;
  int stored = 0;
  const std::unique_ptr<uint8_t, Free> pixels(
      stbi_load_from_memory(job.data(), size, &width, &height, &stored, components));
  if (pixels == nullptr) return Damaged(fmt::format("BMP: {}", stbi_failure_reason()));
  if (width != job.info.width || height != job.info.height) return Damaged("BMP declares two sizes");
  ShapeOutput(job.window, 3, out);
  for (int row = 0; row < job.window.height; ++row) {
    const size_t at = static_cast<size_t>(job.window.y + row) * width + job.window.x;
    const uint8_t* from = pixels.get() + at * components;
    if (components == 4) {
      PutOnBlack(from, job.window.width, OutputRow(out, row));
    } else {
      std::memcpy(OutputRow(out, row), from, static_cast<size_t>(job.window.width) * 3);
    }
  }
  return {};
}

}  // namespace weir::image
