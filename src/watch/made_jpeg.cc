#include "watch/made_jpeg.h"

#include <utility>

#include "image/encode.h"

namespace weir::watch {
namespace {

constexpr int kBlockRow = 16;  // pixels of a row of blocks at 4:2:0

image::JpegOptions Coding(int quality) {
  return {.quality = quality, .sampling = image::Sampling::k420, .standard_tables = true, .restart_rows = 1};
}

// Each picture is whole in itself: what is encoded is delivered as it is.
class MadeJpegs final : public MadeVideo {
 public:
  explicit MadeJpegs(MadeSpec spec) : spec_(std::move(spec)) {}

  Status Resize(int width, int height) override {
    clip_ = TRY(MadeClip::Create(spec_, width, height));
    return {};
  }
  Result<std::optional<MadePacket>> Encode(const MadePicture& picture) override {
    const std::string jpeg =
        TRY(clip_->Encode(picture.phase, static_cast<uint16_t>(spec_.seed), picture.counter, picture.wall));
    return MadePacket{.data = Bytes::Copy(jpeg), .of = picture, .key = true};
  }
  Result<std::optional<MadePacket>> Rest() override { return std::optional<MadePacket>(); }
  void Deliver(const MadePacket& packet, Instant arrived, std::deque<SourceFrame>& ready) override {
    ready.push_back({.jpeg = packet.data, .arrived = arrived});
  }
  Status Reconnect(std::deque<SourceFrame>&) override { return {}; }
  void End(std::deque<SourceFrame>&) override {}
  void Leave(std::deque<SourceFrame>&) override {}

 private:
  const MadeSpec spec_;
  std::shared_ptr<const MadeClip> clip_;
};

}  // namespace

std::optional<ScanLayout> FindScan(std::string_view jpeg) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(jpeg[at]); };
  if (jpeg.size() < 4 || byte(0) != 0xFF || byte(1) != 0xD8) return std::nullopt;
  size_t at = 2;
  while (true) {
    if (at + 4 > jpeg.size() || byte(at) != 0xFF) return std::nullopt;
    const bool scan = byte(at + 1) == 0xDA;
    at += 2 + (static_cast<size_t>(byte(at + 2)) << 8 | byte(at + 3));
    if (scan) break;
  }
  ScanLayout layout{.scan = at};
  for (; at + 1 < jpeg.size(); ++at) {
    if (byte(at) != 0xFF || byte(at + 1) == 0) continue;
    if (byte(at + 1) == 0xD9) {
      layout.end = at;
      return layout;
    }
    if (byte(at + 1) < 0xD0 || byte(at + 1) > 0xD7) return std::nullopt;
    layout.restarts.push_back(at++);
  }
  return std::nullopt;
}

Result<std::shared_ptr<const MadeClip>> MadeClip::Create(const MadeSpec& spec, int width, int height) {
  auto clip = std::make_shared<MadeClip>();
  clip->width_ = width;
  clip->quality_ = spec.quality;
  const MadeScene scene(spec, width, height);
  const auto strip_rows = static_cast<size_t>(StripHeight(width) / kBlockRow);
  for (int phase = 0; phase < kPhases; ++phase) {
    const image::Pixels pixels = scene.Draw(phase, &clip->persons_.emplace_back());
    const std::string jpeg = TRY(image::EncodeJpeg(pixels, Coding(spec.quality)));
    const auto layout = FindScan(jpeg);
    if (!layout || layout->restarts.size() < strip_rows)
      return Fail(ErrorCode::kInternal, "the JPEG encoder made no restart markers");
    clip->heads_.push_back(jpeg.substr(0, layout->scan));
    clip->tails_.push_back(jpeg.substr(layout->restarts[strip_rows - 1]));
  }
  return clip;
}

Result<std::string> MadeClip::Encode(int phase, uint16_t stream, uint32_t counter,
                                     Duration captured_wall) const {
  const image::Pixels strip =
      DrawStrip(width_, 3,
                {.stream = stream,
                 .counter = counter,
                 .captured = std::chrono::floor<std::chrono::microseconds>(captured_wall)});
  const std::string jpeg = TRY(image::EncodeJpeg(strip, Coding(quality_)));
  const auto layout = FindScan(jpeg);
  if (!layout) return Fail(ErrorCode::kInternal, "the JPEG encoder made no scan");
  const auto at = static_cast<size_t>(phase);
  return heads_[at] + jpeg.substr(layout->scan, layout->end - layout->scan) + tails_[at];
}

std::unique_ptr<MadeVideo> MakeMadeJpegs(const MadeSpec& spec) { return std::make_unique<MadeJpegs>(spec); }

}  // namespace weir::watch
