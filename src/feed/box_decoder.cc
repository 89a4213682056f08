#include "feed/box_decoder.h"

#include <cstring>
#include <utility>
#include <vector>

#include "image/exif.h"
#include "image/formats.h"
#include "image/resize.h"

namespace weir::feed {
namespace {

// A buffer that one huge picture made this large is given back.
constexpr size_t kKeptBytes = 64 << 20;

// Turns `shown`, which lies as stored, upright. REQUIRES: `out` is another.
void PutUpright(const image::Pixels& shown, const image::Turn& turn, image::Pixels& out) {
  out.width = turn.transposed ? shown.height : shown.width;
  out.height = turn.transposed ? shown.width : shown.height;
  out.channels = shown.channels;
  out.data.resize(shown.data.size());
  const auto channels = static_cast<int64_t>(shown.channels);
  const int64_t row_bytes = shown.width * channels;
  const int64_t step_x = turn.mirror_x ? -channels : channels,
                step_y = turn.mirror_y ? -row_bytes : row_bytes;
  const int64_t across = turn.transposed ? step_y : step_x, down = turn.transposed ? step_x : step_y;
  const int64_t start = (turn.mirror_x ? (shown.width - 1) * channels : 0) +
                        (turn.mirror_y ? (shown.height - 1) * row_bytes : 0);
  uint8_t* target = out.data.data();
  for (int y = 0; y < out.height; ++y) {
    const uint8_t* source = shown.data.data() + start + y * down;
    for (int x = 0; x < out.width; ++x, source += across, target += channels)
      std::memcpy(target, source, static_cast<size_t>(channels));
  }
}

}  // namespace

struct BoxDecoder::State {
  image::DecodeOptions options;
  image::Decoder decoder;
  image::JpegScratch scratch;
  image::Resizer resizer;
  image::Axis x, y;
  image::Pixels decoded, resized, upright;
};

BoxDecoder::BoxDecoder(const image::DecodeOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->options.shrink = 1;
}
BoxDecoder::~BoxDecoder() = default;
BoxDecoder::BoxDecoder(BoxDecoder&&) noexcept = default;

image::Accepted<image::PictureInfo> BoxDecoder::ReadInfo(std::span<const std::byte> encoded) const {
  return image::ReadPictureInfo(encoded, state_->options);
}

image::Accepted<const image::Pixels*> BoxDecoder::Decode(std::span<const std::byte> encoded,
                                                         const image::PictureInfo& info,
                                                         dataset::Orientation orientation, const Box& box,
                                                         int width, int height) {
  State& s = *state_;
  if (s.decoded.data.capacity() > kKeptBytes) s.decoded = {};
  const image::Turn turn =
      orientation == dataset::Orientation::kExif ? image::TurnOf(info.orientation) : image::Turn{};
  const int64_t upright_width = turn.transposed ? info.height : info.width;
  const int64_t upright_height = turn.transposed ? info.width : info.height;
  CHECK(box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 && box.width <= upright_width - box.x &&
        box.height <= upright_height - box.y);
  image::Axis across = image::MakeBoxAxis(upright_width, box.x, box.width, width);
  image::Axis down = image::MakeBoxAxis(upright_height, box.y, box.height, height);
  if (turn.transposed) std::swap(across, down);
  s.x = turn.mirror_x ? image::Mirror(across, info.width) : std::move(across);
  s.y = turn.mirror_y ? image::Mirror(down, info.height) : std::move(down);
  const image::Window window{static_cast<int>(s.x.source_begin()), static_cast<int>(s.y.source_begin()),
                             static_cast<int>(s.x.source_end() - s.x.source_begin()),
                             static_cast<int>(s.y.source_end() - s.y.source_begin())};
  if (info.format == image::PictureFormat::kJpeg) {
    const image::DecodeJob job{encoded, info, window, s.options.tolerate_damage, s.options.max_pixels, 1};
    bool begun = false;
    TRY_STATUS(image::DecodeJpegRows(
        job, s.scratch, s.decoded, [&](const image::Pixels& rows, const image::Window& where) {
          if (!begun) s.resizer.Begin(s.x, s.y, rows.channels, s.resized);
          begun = true;
          const uint8_t* data = rows.data.data();
          const size_t columns = static_cast<size_t>(window.x - where.x) * static_cast<size_t>(rows.channels);
          s.resizer.Add({data + columns, static_cast<size_t>(rows.width) * static_cast<size_t>(rows.channels),
                         data + rows.data.size(), rows.channels},
                        where.y, where.height);
        }));
  } else {
    TRY_STATUS(s.decoder.Decode(encoded, info, window, s.options, s.decoded));
    s.resizer.Resize(s.decoded, s.x, s.y, s.resized);
  }
  if (!turn.transposed && !turn.mirror_x && !turn.mirror_y) return &s.resized;
  PutUpright(s.resized, turn, s.upright);
  return &s.upright;
}

image::Accepted<const image::Pixels*> BoxDecoder::DecodeWhole(std::span<const std::byte> encoded,
                                                              const image::PictureInfo& info) {
  State& s = *state_;
  if (s.decoded.data.capacity() > kKeptBytes) s.decoded = {};
  TRY_STATUS(s.decoder.Decode(encoded, info, {0, 0, info.width, info.height}, s.options, s.decoded));
  return &s.decoded;
}

const image::Pixels& BoxDecoder::Resize(std::span<const std::byte> pixels, const RawShape& shape,
                                        const Box& box, int width, int height) {
  State& s = *state_;
  s.x = image::MakeBoxAxis(shape.width, box.x, box.width, width);
  s.y = image::MakeBoxAxis(shape.height, box.y, box.height, height);
  const auto* data = reinterpret_cast<const uint8_t*>(pixels.data());
  const size_t step = static_cast<size_t>(shape.width) * static_cast<size_t>(shape.channels);
  const auto first_row = static_cast<size_t>(s.y.source_begin()),
             first_column = static_cast<size_t>(s.x.source_begin());
  s.resizer.Begin(s.x, s.y, shape.channels, s.resized);
  s.resizer.Add({data + first_row * step + first_column * static_cast<size_t>(shape.channels), step,
                 data + pixels.size(), shape.channels},
                s.y.source_begin(), s.y.source_end() - s.y.source_begin());
  return s.resized;
}

}  // namespace weir::feed
