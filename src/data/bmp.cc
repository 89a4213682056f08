// BMP by stb_image, which reads zeros past the end of a cut file: what it will read is held against the
// file's size first.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "data/formats.h"

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

namespace weir::data {
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
uint64_t DataBytes(const Header& header) {
  const uint64_t row = (static_cast<uint64_t>(header.width) * header.bits + 31) / 32 * 4;
  return row * static_cast<uint64_t>(std::abs(header.height));
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

}  // namespace weir::data
