#include "image/decode.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <utility>

#include "image/formats.h"

namespace weir::image {
namespace {

Accepted<PictureInfo> ReadInfo(PictureFormat format, std::span<const std::byte> encoded) {
  switch (format) {
    case PictureFormat::kJpeg:
      return ReadJpegInfo(encoded);
    case PictureFormat::kPng:
      return ReadPngInfo(encoded);
    case PictureFormat::kTiff:
      return ReadTiffInfo(encoded);
    case PictureFormat::kGif:
      return ReadGifInfo(encoded);
    case PictureFormat::kBmp:
      return ReadBmpInfo(encoded);
    case PictureFormat::kWebp:
      return ReadWebpInfo(encoded);
  }
  return Unsupported("no decoder for this format");
}

bool Inside(const Window& window, const PictureInfo& info, int shrink) {
  return window.x >= 0 && window.y >= 0 && window.width > 0 && window.height > 0 &&
         window.width <= ShrunkSide(info.width, shrink) - window.x &&
         window.height <= ShrunkSide(info.height, shrink) - window.y;
}

}  // namespace

std::string_view ToString(PictureFormat format) {
  switch (format) {
    case PictureFormat::kJpeg:
      return "jpeg";
    case PictureFormat::kPng:
      return "png";
    case PictureFormat::kTiff:
      return "tiff";
    case PictureFormat::kGif:
      return "gif";
    case PictureFormat::kBmp:
      return "bmp";
    case PictureFormat::kWebp:
      return "webp";
  }
  return "unknown";
}

std::optional<PictureFormat> SniffFormat(std::span<const std::byte> head) {
  using namespace std::string_view_literals;
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("\xFF\xD8\xFF"sv)) return PictureFormat::kJpeg;
  if (text.starts_with("\x89PNG\r\n\x1A\n"sv)) return PictureFormat::kPng;
  if (text.starts_with("GIF87a"sv) || text.starts_with("GIF89a"sv)) return PictureFormat::kGif;
  // The fourth form of each is BigTIFF.
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (text.starts_with(magic)) return PictureFormat::kTiff;
  }
  if (text.size() >= 12 && text.starts_with("RIFF"sv) && text.substr(8, 4) == "WEBP"sv)
    return PictureFormat::kWebp;
  // "BM" alone begins many texts: the low bytes of the second header's size tell (12, 40, 52, 56, 64, 108,
  // 124).
  if (text.size() >= 16 && text.starts_with("BM"sv) && text[15] == 0 &&
      "\x0C\x28\x34\x38\x40\x6C\x7C"sv.contains(text[14])) {
    return PictureFormat::kBmp;
  }
  return std::nullopt;
}

Accepted<PictureInfo> MakeInfo(PictureFormat format, uint64_t width, uint64_t height, int orientation) {
  if (width == 0 || height == 0) {
    return Damaged(fmt::format("{} declares {}x{} pixels", ToString(format), width, height));
  }
  constexpr uint64_t kMax = std::numeric_limits<int>::max();
  if (width > kMax || height > kMax) {
    return Refuse(RejectReason::kTooManyPixels,
                  fmt::format("{} declares {}x{} pixels", ToString(format), width, height));
  }
  return PictureInfo{format, static_cast<int>(width), static_cast<int>(height), orientation};
}

Accepted<void> CheckPixels(const PictureInfo& info, int64_t max_pixels) {
  const int64_t pixels = static_cast<int64_t>(info.width) * info.height;
  if (pixels <= max_pixels) return {};
  return Refuse(RejectReason::kTooManyPixels,
                fmt::format("{} declares {}x{} pixels, more than the limit of {}", ToString(info.format),
                            info.width, info.height, max_pixels));
}

Accepted<void> CheckDecoderMemory(uint64_t bytes) {
  if (bytes <= kMaxDecoderBytes) return {};
  return Refuse(RejectReason::kTooManyPixels,
                fmt::format("decoding needs {} MiB at once, more than the limit of {}", bytes >> 20,
                            kMaxDecoderBytes >> 20));
}

void ShapeOutput(const Window& window, int channels, Pixels& out) {
  out.width = window.width;
  out.height = window.height;
  out.channels = channels;
  out.data.resize(static_cast<size_t>(window.width) * window.height * channels);
}

void PutOnBlack(const uint8_t* rgba, size_t count, uint8_t* rgb) {
  for (size_t i = 0; i < count; ++i, rgba += 4, rgb += 3) {
    const int alpha = rgba[3];
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>((rgba[c] * alpha + 127) / 255);
  }
}

Accepted<PictureInfo> ReadPictureInfo(std::span<const std::byte> encoded, const DecodeOptions& options) {
  if (encoded.empty()) return Refuse(RejectReason::kEmpty, "no bytes");
  const auto format = SniffFormat(encoded);
  if (!format)
    return Refuse(RejectReason::kNotAPicture, "the content is none of jpeg, png, tiff, gif, bmp, webp");
  const PictureInfo info = TRY(ReadInfo(*format, encoded));
  TRY_STATUS(CheckPixels(info, options.max_pixels));
  return info;
}

struct Decoder::State {
  Scratch scratch;
  JpegScratch jpeg;
};

Decoder::Decoder() : state_(std::make_unique<State>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Accepted<void> Decoder::Decode(std::span<const std::byte> encoded, const PictureInfo& info,
                               const Window& window, const DecodeOptions& options, Pixels& out) {
  CHECK(options.shrink == 1 || info.format == PictureFormat::kJpeg);
  CHECK(Inside(window, info, options.shrink));
  TRY_STATUS(CheckPixels(info, options.max_pixels));
  const DecodeJob job{encoded,
                      info,
                      window,
                      options.tolerate_damage,
                      options.max_pixels,
                      options.shrink,
                      options.keep_numbers};
  Scratch& scratch = state_->scratch;
  switch (info.format) {
    case PictureFormat::kJpeg:
      return DecodeJpeg(job, state_->jpeg, out);
    case PictureFormat::kPng:
      return DecodePng(job, scratch, out);
    case PictureFormat::kTiff:
      return DecodeTiff(job, scratch, out);
    case PictureFormat::kGif:
      return DecodeGif(job, scratch, out);
    case PictureFormat::kBmp:
      return DecodeBmp(job, scratch, out);
    case PictureFormat::kWebp:
      return DecodeWebp(job, scratch, out);
  }
  return Unsupported("no decoder for this format");
}

}  // namespace weir::image
