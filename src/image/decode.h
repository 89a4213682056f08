// Encoded pictures to pixels. The content decides the format, never the name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/reject.h"

namespace weir::image {

enum class PictureFormat { kJpeg, kPng, kTiff, kGif, kBmp, kWebp };

// The words and names of a format.
struct PictureFormatFacts {
  PictureFormat format = PictureFormat::kJpeg;
  std::string_view word;                    // in messages and results
  std::string_view extension;               // of files that weir writes
  std::string_view record_name;             // in tf.Example records, as TensorFlow's own tools have it
  std::array<std::string_view, 4> endings;  // of names that people give, in small letters
};
// One entry for each, in the order of the enum. formats.h says what else a format needs.
inline constexpr std::array<PictureFormatFacts, 6> kPictureFormats{
    {{PictureFormat::kJpeg, "jpeg", "jpg", "JPEG", {"jpg", "jpeg", "jpe", "jfif"}},
     {PictureFormat::kPng, "png", "png", "PNG", {"png"}},
     {PictureFormat::kTiff, "tiff", "tif", "TIFF", {"tif", "tiff"}},
     {PictureFormat::kGif, "gif", "gif", "GIF", {"gif"}},
     {PictureFormat::kBmp, "bmp", "bmp", "BMP", {"bmp", "dib"}},
     {PictureFormat::kWebp, "webp", "webp", "WEBP", {"webp"}}}};
constexpr const PictureFormatFacts& FactsOf(PictureFormat format) {
  return kPictureFormats[static_cast<size_t>(format)];
}
constexpr std::string_view ToString(PictureFormat format) { return FactsOf(format).word; }
std::string PictureFormatList();  // "jpeg, png, ..."
// Whether a name without its folder ends as those of pictures do, in letters of any case.
bool IsNamedLikeAPicture(std::string_view name);

// The format by the first bytes (16 are enough), if they begin any picture known.
std::optional<PictureFormat> SniffFormat(std::span<const std::byte> head);

struct PictureInfo {
  PictureFormat format = PictureFormat::kJpeg;
  int width = 0;  // as stored, before orientation
  int height = 0;
  int orientation = 1;  // EXIF, 1 to 8; 1 where there is none or it is not legal
};

// Columns [x, x + width) and rows [y, y + height) of a stored picture.
struct Window {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const Window&) const = default;
};

// Interleaved 8-bit pixels, rows without padding: pixels[(row * width + column) * channels + channel].
// channels is 1 (grey) or 3 (RGB). Alpha has been put on black; 16 bits have been scaled to 8; CMYK and YCCK
// have become RGB.
struct Pixels {
  int width = 0;
  int height = 0;
  int channels = 3;
  std::vector<uint8_t> data;
};

struct DecodeOptions {
  int64_t max_pixels = 100'000'000;  // declared by the header; more is refused before memory is asked for
  bool tolerate_damage = false;      // let through what the decoder can still show
  // JPEG only: 2, 4 or 8 has the inverse transform give a picture of 1/shrink of the size, sides rounded up.
  // The window is then one of that picture.
  int shrink = 1;
  // PNG only: numbers as the file has them: a palette's indices, and grey levels of fewer than 8 bits without
  // scaling. For pictures whose levels are names of classes.
  bool keep_numbers = false;
};

// A side of a picture that is decoded at 1/shrink of its size.
inline int ShrunkSide(int side, int shrink) { return (side + shrink - 1) / shrink; }

// Reads the header only. Rejects: kEmpty, kNotAPicture, kDamaged, kUnsupported, kTooManyPixels.
Accepted<PictureInfo> ReadPictureInfo(std::span<const std::byte> encoded, const DecodeOptions& options);

// Decodes the first frame of a GIF or animated WebP, on black, and a TIFF's first page. Inks are read
// inverted, as every writer of CMYK JPEGs stores them. An interlaced or tiled picture is held in part like
// any other; one that must be held whole (a large progressive JPEG, a TIFF of one strip) may take 400 MiB and
// is refused beyond.
//
// Decodes pictures one after the other, keeping its buffers. One thread at a time; each thread has its own.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  // The pixels of `window` (stored coordinates, inside the picture) into `out`, whose memory is reused.
  // Pixels outside the window may never be computed, but the whole stream is read to its end, so damage
  // anywhere is found: a decoder warning that means wrong data rejects as kDamaged unless tolerated. The
  // pixels inside are those a full decode gives. `info` is what ReadPictureInfo gave for the same bytes.
  Accepted<void> Decode(std::span<const std::byte> encoded, const PictureInfo& info, const Window& window,
                        const DecodeOptions& options, Pixels& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::image
