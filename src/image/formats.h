// The functions that each format's file gives to the table in decode.cc. Private to the decoder. A new format
// has an entry in kPictureFormats (decode.h), its functions here and in that table, and a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "image/decode.h"

namespace weir::image {

// The memory a decoder may hold beside the window's pixels; pictures that need more (one strip of a hundred
// megapixels, the coefficients of a huge progressive JPEG) are refused before the memory is asked for.
inline constexpr size_t kMaxDecoderBytes = size_t{400} << 20;

struct DecodeJob {
  std::span<const std::byte> encoded;
  PictureInfo info;
  Window window;  // inside the picture of `info`
  bool tolerate_damage = false;
  int64_t max_pixels = 0;     // also of a part that may be larger than the picture (a frame)
  int shrink = 1;             // of a JPEG: 1, 2, 4 or 8
  bool keep_numbers = false;  // of a PNG

  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(encoded.data()); }
  size_t size() const { return encoded.size(); }
};

// The header's facts. `width` and `height` have not been held against a limit, but are at least 1.
Accepted<PictureInfo> ReadJpegInfo(std::span<const std::byte> encoded);
Accepted<PictureInfo> ReadPngInfo(std::span<const std::byte> encoded);
Accepted<PictureInfo> ReadTiffInfo(std::span<const std::byte> encoded);
Accepted<PictureInfo> ReadGifInfo(std::span<const std::byte> encoded);
Accepted<PictureInfo> ReadBmpInfo(std::span<const std::byte> encoded);
Accepted<PictureInfo> ReadWebpInfo(std::span<const std::byte> encoded);

// `scratch` is memory kept between pictures; its contents mean nothing.
using Scratch = std::vector<uint8_t>;
// The same for JPEGs.
class JpegHuffman;
struct JpegScratch {
  Scratch rows;
  std::shared_ptr<JpegHuffman> huffman;  // from the first picture on
};
Accepted<void> DecodeJpeg(const DecodeJob& job, JpegScratch& scratch, Pixels& out);
// Gets rows as they are decoded, from top to bottom, while they are in the cache: the first ones of `rows`
// are those of `where`, which has at least the window's columns; columns beside those need not be what a full
// decode gives. `rows` has a row more than `where`, so that vectors may be read past its end.
using TakeRows = std::function<void(const Pixels& rows, const Window& where)>;
// The same, by strips that `rows` holds one after the other. What was handed over of a picture that turns out
// to be damaged means nothing.
Accepted<void> DecodeJpegRows(const DecodeJob& job, JpegScratch& scratch, Pixels& rows, const TakeRows& take);
Accepted<void> DecodePng(const DecodeJob& job, Scratch& scratch, Pixels& out);
Accepted<void> DecodeTiff(const DecodeJob& job, Scratch& scratch, Pixels& out);
Accepted<void> DecodeGif(const DecodeJob& job, Scratch& scratch, Pixels& out);
Accepted<void> DecodeBmp(const DecodeJob& job, Scratch& scratch, Pixels& out);
Accepted<void> DecodeWebp(const DecodeJob& job, Scratch& scratch, Pixels& out);

inline std::unexpected<Reject> Refuse(RejectReason reason, std::string detail) {
  return std::unexpected(Reject{reason, std::move(detail)});
}
inline std::unexpected<Reject> Damaged(std::string detail) {
  return Refuse(RejectReason::kDamaged, std::move(detail));
}
inline std::unexpected<Reject> Unsupported(std::string detail) {
  return Refuse(RejectReason::kUnsupported, std::move(detail));
}

// The facts of a header whose sizes may be anything: kDamaged for zero, kTooManyPixels for what an int cannot
// hold.
Accepted<PictureInfo> MakeInfo(PictureFormat format, uint64_t width, uint64_t height, int orientation);

// kTooManyPixels when `info` has more pixels than `max_pixels`.
Accepted<void> CheckPixels(const PictureInfo& info, int64_t max_pixels);

// kTooManyPixels when a decoder would hold more than kMaxDecoderBytes.
Accepted<void> CheckDecoderMemory(uint64_t bytes);

// Gives `out` the window's size. Its pixels are the old ones or 0 where a decoder does not write.
void ShapeOutput(const Window& window, int channels, Pixels& out);
inline uint8_t* OutputRow(Pixels& out, int row) {
  return out.data.data() + static_cast<size_t>(row) * out.width * out.channels;
}

// `count` pixels of RGBA to RGB, put on black: value * alpha / 255, rounded.
void PutOnBlack(const uint8_t* rgba, size_t count, uint8_t* rgb);

// An integer of two or four bytes at `at`. REQUIRES: it is there.
inline uint32_t BigEndian16(const uint8_t* at) { return static_cast<uint32_t>(at[0]) << 8 | at[1]; }
inline uint32_t BigEndian32(const uint8_t* at) { return BigEndian16(at) << 16 | BigEndian16(at + 2); }
inline uint32_t LittleEndian16(const uint8_t* at) { return at[0] | static_cast<uint32_t>(at[1]) << 8; }
inline uint32_t LittleEndian32(const uint8_t* at) {
  return LittleEndian16(at) | LittleEndian16(at + 2) << 16;
}

}  // namespace weir::image
