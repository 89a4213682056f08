// WebP by libwebp. Of an animation the first frame, on a black canvas, as for GIF.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "image/exif.h"
#include "image/formats.h"

namespace weir::image {
namespace {

struct Delete {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, Delete>;

// The container of a whole file, or of a cut one with `state` telling so. Null when it is no container.
Demuxer OpenContainer(std::span<const std::byte> encoded, WebPDemuxState& state) {
  const WebPData data{reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size()};
  return Demuxer(WebPDemuxPartial(&data, &state));
}

int OrientationOf(const WebPDemuxer* demuxer) {
  std::optional<int> orientation;
  WebPChunkIterator chunk{};
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) != 0) {
    orientation = FindExifOrientation({chunk.chunk.bytes, chunk.chunk.size});
    WebPDemuxReleaseChunkIterator(&chunk);
  }
  if (!orientation && WebPDemuxGetChunk(demuxer, "XMP ", 1, &chunk) != 0) {
    orientation = FindXmpOrientation({reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size});
    WebPDemuxReleaseChunkIterator(&chunk);
  }
  return orientation.value_or(1);
}

struct Frame {
  WebPIterator at{};
  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { WebPDemuxReleaseIterator(&at); }
};

// A lossless picture, and the alpha of a lossy one, is held whole inside libwebp as well.
uint64_t MemoryFor(const WebPBitstreamFeatures& features) {
  constexpr int kLossless = 2;
  const uint64_t pixels = static_cast<uint64_t>(features.width) * features.height;
  const uint64_t inside = features.format == kLossless ? 4 : features.has_alpha != 0 ? 5 : 0;
  return pixels * (4 + inside);
}

void CopyFrame(const uint8_t* rgba, const WebPIterator& frame, const Window& window, Pixels& out) {
  const int left = std::max(frame.x_offset, window.x);
  const int right = std::min(frame.x_offset + frame.width, window.x + window.width);
  const int top = std::max(frame.y_offset, window.y);
  const int bottom = std::min(frame.y_offset + frame.height, window.y + window.height);
  for (int y = top; y < bottom && left < right; ++y) {
    const size_t at = static_cast<size_t>(y - frame.y_offset) * frame.width + (left - frame.x_offset);
    PutOnBlack(rgba + at * 4, right - left,
               OutputRow(out, y - window.y) + static_cast<size_t>(left - window.x) * 3);
  }
}

}  // namespace

Accepted<PictureInfo> ReadWebpInfo(std::span<const std::byte> encoded) {
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  const Demuxer demuxer = OpenContainer(encoded, state);
  if (demuxer == nullptr || state < WEBP_DEMUX_PARSED_HEADER) return Damaged("WebP has a wrong header");
  return MakeInfo(PictureFormat::kWebp, WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
                  WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT), OrientationOf(demuxer.get()));
}

Accepted<void> DecodeWebp(const DecodeJob& job, Scratch& scratch, Pixels& out) {
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  const Demuxer demuxer = OpenContainer(job.encoded, state);
  const bool whole = demuxer != nullptr && state == WEBP_DEMUX_DONE;
  if (!whole && !job.tolerate_damage) return Damaged("WebP is cut, or its chunks are wrong");
  Frame frame;
  if (demuxer == nullptr || WebPDemuxGetFrame(demuxer.get(), 1, &frame.at) == 0)
    return Damaged("WebP has no frame");

  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return Unsupported("WebP: libwebp of another version");
  const WebPData& bytes = frame.at.fragment;
  const VP8StatusCode header = WebPGetFeatures(bytes.bytes, bytes.size, &config.input);
  if (header != VP8_STATUS_OK || config.input.width != frame.at.width ||
      config.input.height != frame.at.height) {
    return Damaged("WebP has a wrong frame header");
  }
  TRY_STATUS(CheckDecoderMemory(MemoryFor(config.input)));
  scratch.assign(size_t{4} * frame.at.width * frame.at.height, 0);
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {scratch.data(), frame.at.width * 4, scratch.size()};
  const VP8StatusCode status = WebPDecode(bytes.bytes, bytes.size, &config);
  if (status != VP8_STATUS_OK && !job.tolerate_damage) return Damaged("WebP has wrong data");
  ShapeOutput(job.window, 3, out);
  std::memset(out.data.data(), 0, out.data.size());
  CopyFrame(scratch.data(), frame.at, job.window, out);
  return {};
}

}  // namespace weir::image
