#include "image/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "image/formats.h"

namespace weir::image {
namespace {

using namespace std::string_view_literals;

using Head = std::string_view;

// The fourth form of each is BigTIFF.
bool BeginsTiff(Head head) {
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (head.starts_with(magic)) return true;
  }
  return false;
}

// "BM" alone begins many texts: the low bytes of the second header's size tell (12, 40, 52, 56, 64, 108,
// 124).
bool BeginsBmp(Head head) {
  return head.size() >= 16 && head.starts_with("BM"sv) && head[15] == 0 &&
         "\x0C\x28\x34\x38\x40\x6C\x7C"sv.contains(head[14]);
}

// Memory that a decoder keeps between pictures.
struct Kept {
  Scratch scratch;
  JpegScratch jpeg;
};

template <auto kDecode>
Accepted<void> WithScratch(const DecodeJob& job, Kept& kept, Pixels& out) {
  return kDecode(job, kept.scratch, out);
}

// The functions of a format, in the order of the enum.
struct Codec {
  bool (*begins)(Head head);
  Accepted<PictureInfo> (*read_info)(std::span<const std::byte> encoded);
  Accepted<void> (*decode)(const DecodeJob& job, Kept& kept, Pixels& out);
};
constexpr std::array<Codec, kPictureFormats.size()> kCodecs{
    {{[](Head head) { return head.starts_with("\xFF\xD8\xFF"sv); }, ReadJpegInfo,
      [](const DecodeJob& job, Kept& kept, Pixels& out) { return DecodeJpeg(job, kept.jpeg, out); }},
     {[](Head head) { return head.starts_with("\x89PNG\r\n\x1A\n"sv); }, ReadPngInfo, WithScratch<DecodePng>},
     {BeginsTiff, ReadTiffInfo, WithScratch<DecodeTiff>},
     {[](Head head) { return head.starts_with("GIF87a"sv) || head.starts_with("GIF89a"sv); }, ReadGifInfo,
      WithScratch<DecodeGif>},
     {BeginsBmp, ReadBmpInfo, WithScratch<DecodeBmp>},
     {[](Head head) {
        return head.size() >= 12 && head.starts_with("RIFF"sv) && head.substr(8, 4) == "WEBP"sv;
      },
      ReadWebpInfo, WithScratch<DecodeWebp>}}};
const Codec& CodecOf(PictureFormat format) { return kCodecs[static_cast<size_t>(format)]; }

bool Inside(const Window& window, const PictureInfo& info, int shrink) {
  return window.x >= 0 && window.y >= 0 && window.width > 0 && window.height > 0 &&
         window.width <= ShrunkSide(info.width, shrink) - window.x &&
         window.height <= ShrunkSide(info.height, shrink) - window.y;
}

}  // namespace

std::string PictureFormatList() {
  std::string list;
  for (const PictureFormatFacts& facts : kPictureFormats)
    list += (list.empty() ? "" : ", ") + std::string(facts.word);
  return list;
}

bool IsNamedLikeAPicture(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return false;
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::ranges::any_of(kPictureFormats, [&](const PictureFormatFacts& facts) {
    return std::ranges::any_of(facts.endings, [&](std::string_view ending) {
      return !ending.empty() && std::ranges::equal(name.substr(dot + 1), ending, same);
    });
  });
}

std::optional<PictureFormat> SniffFormat(std::span<const std::byte> head) {
  const Head text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const PictureFormatFacts& facts : kPictureFormats) {
    if (CodecOf(facts.format).begins(text)) return facts.format;
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
  if (!format) return Refuse(RejectReason::kNotAPicture, "the content is none of " + PictureFormatList());
  const PictureInfo info = TRY(CodecOf(*format).read_info(encoded));
  TRY_STATUS(CheckPixels(info, options.max_pixels));
  return info;
}

struct Decoder::State : Kept {};

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
  return CodecOf(info.format).decode(job, *state_, out);
}

}  // namespace weir::image
