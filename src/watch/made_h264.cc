#include <fmt/format.h>

#include <map>
#include <utility>

#include "watch/libav_decoder.h"
#include "watch/made_scene.h"
#include "watch/made_video.h"

namespace weir::watch {

#ifdef WEIR_HAS_LIBAV
namespace {

constexpr char kEncoder[] = "libx264";

// Encoder and decoder of one stream. The encoder goes on when a packet is lost, as a camera's does.
class MadeH264 final : public MadeVideo {
 public:
  MadeH264(const Libav& av, const MadeSpec& spec, const SourceOptions& options)
      : av_(av), spec_(spec), options_(options), packet_(av.av_packet_alloc()), frame_(av.av_frame_alloc()) {}
  ~MadeH264() override {
    Close();
    av_.av_packet_free(&packet_);
    av_.av_frame_free(&frame_);
  }

  Status Resize(int width, int height) override;
  Result<std::optional<MadePacket>> Encode(const MadePicture& picture) override;
  Result<std::optional<MadePacket>> Rest() override;
  void Deliver(const MadePacket& packet, Instant arrived, std::deque<SourceFrame>& ready) override;
  Status Reconnect(std::deque<SourceFrame>& ready) override;
  void End(std::deque<SourceFrame>& ready) override {
    if (decoder_) decoder_->Finish();
    Take(ready);
  }
  void Leave(std::deque<SourceFrame>& ready) override {
    if (decoder_) decoder_->Leave();
    Take(ready);
  }

 private:
  void Close() {
    if (encoder_ != nullptr) av_.avcodec_free_context(&encoder_);
    if (scaler_ != nullptr) av_.sws_freeContext(std::exchange(scaler_, nullptr));
  }
  Status OpenDecoder();
  Status OpenEncoder(int width, int height);
  void Paint(const MadePicture& picture);
  Result<std::optional<MadePacket>> Receive();
  void Take(std::deque<SourceFrame>& ready) {
    for (SourceFrame& frame : frames_) ready.push_back(std::move(frame));
    frames_.clear();
  }
  Error Failure(int error) const {
    return {ErrorCode::kInternal, fmt::format("the H.264 encoder: {}", av_.Words(error))};
  }

  const Libav& av_;
  const MadeSpec& spec_;
  const SourceOptions& options_;
  AVPacket* packet_;
  AVFrame* frame_;
  AVCodecContext* encoder_ = nullptr;
  SwsContext* scaler_ = nullptr;
  std::optional<MadeScene> scene_;
  std::deque<MadePacket> before_;            // of the size before this one
  std::map<int64_t, MadePicture> pictures_;  // in the encoder, by time stamp
  int64_t stamp_ = 0;
  std::deque<SourceFrame> frames_;
  std::optional<LibavDecoder> decoder_;
};

// Key frames carry the parameters, so a decoder can begin at any of them.
Status MadeH264::OpenEncoder(int width, int height) {
  const AVCodec* const codec = av_.avcodec_find_encoder_by_name(kEncoder);
  if (codec == nullptr)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("libavcodec on this machine has no {}: give codec=mjpeg", kEncoder));
  encoder_ = av_.avcodec_alloc_context3(codec);
  encoder_->width = width;
  encoder_->height = height;
  encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
  encoder_->time_base = {1, 1000};
  encoder_->gop_size = spec_.gop > 0 ? spec_.gop : std::max(1, static_cast<int>(2 * spec_.fps));
  encoder_->max_b_frames = spec_.bframes;
  encoder_->thread_count = 1;
  av_.av_opt_set(encoder_->priv_data, "preset", "ultrafast", 0);
  av_.av_opt_set(encoder_->priv_data, "tune", "zerolatency", 0);
  av_.av_opt_set(encoder_->priv_data, "crf", fmt::format("{}", 51 - spec_.quality * 2 / 5).c_str(), 0);
  av_.av_opt_set(encoder_->priv_data, "x264-params",
                 "b-adapt=0:b-pyramid=none:scenecut=0:repeat-headers=1:sliced-threads=0", 0);
  if (const int error = av_.avcodec_open2(encoder_, codec, nullptr); error < 0)
    return std::unexpected(Failure(error));
  frame_->format = AV_PIX_FMT_YUV420P;
  frame_->width = width;
  frame_->height = height;
  return {};
}

Status MadeH264::OpenDecoder() {
  decoder_.emplace(av_, "made:", options_, frames_);
  AVCodecParameters* codec = av_.avcodec_parameters_alloc();
  codec->codec_type = AVMEDIA_TYPE_VIDEO;
  codec->codec_id = AV_CODEC_ID_H264;
  const Status opened = decoder_->Open(*codec);
  av_.avcodec_parameters_free(&codec);
  return opened;
}

Status MadeH264::Resize(int width, int height) {
  if (encoder_ != nullptr) {
    av_.avcodec_send_frame(encoder_, nullptr);
    while (auto packet = TRY(Receive())) before_.push_back(*std::move(packet));
  }
  Close();
  scene_.emplace(spec_, width, height);
  TRY_STATUS(OpenEncoder(width, height));
  return decoder_ ? Status() : OpenDecoder();
}

// Draws the picture and its code into the frame's planes.
void MadeH264::Paint(const MadePicture& picture) {
  const image::Pixels pixels = scene_->Draw(picture.phase, nullptr);
  scaler_ = av_.sws_getCachedContext(scaler_, pixels.width, pixels.height, AV_PIX_FMT_RGB24, pixels.width,
                                     pixels.height, AV_PIX_FMT_YUV420P, SWS_POINT, nullptr, nullptr, nullptr);
  const uint8_t* const from[4] = {pixels.data.data(), nullptr, nullptr, nullptr};
  const int step[4] = {pixels.width * 3, 0, 0, 0};
  av_.sws_scale(scaler_, from, step, 0, pixels.height, frame_->data, frame_->linesize);
  const image::Pixels strip =
      DrawStrip(pixels.width, 1,
                {.stream = static_cast<uint16_t>(spec_.seed),
                 .counter = picture.counter,
                 .captured = std::chrono::floor<std::chrono::microseconds>(picture.wall)});
  constexpr uint8_t kNoColour = 128;
  for (int y = 0; y < strip.height; ++y) {
    const uint8_t* const line = strip.data.data() + static_cast<size_t>(y) * strip.width;
    std::copy(line, line + strip.width, frame_->data[0] + static_cast<ptrdiff_t>(y) * frame_->linesize[0]);
    for (int plane = 1; plane < 3; ++plane) {
      uint8_t* const colour = frame_->data[plane] + static_cast<ptrdiff_t>(y / 2) * frame_->linesize[plane];
      std::fill(colour, colour + strip.width / 2, kNoColour);
    }
  }
}

Result<std::optional<MadePacket>> MadeH264::Encode(const MadePicture& picture) {
  // The encoder may still hold the planes of the picture before.
  av_.av_frame_unref(frame_);
  frame_->format = AV_PIX_FMT_YUV420P;
  frame_->width = encoder_->width;
  frame_->height = encoder_->height;
  if (const int error = av_.av_frame_get_buffer(frame_, 0); error < 0) return std::unexpected(Failure(error));
  Paint(picture);
  frame_->pts = stamp_;
  pictures_[stamp_++] = picture;
  if (const int error = av_.avcodec_send_frame(encoder_, frame_); error < 0)
    return std::unexpected(Failure(error));
  auto packet = TRY(Receive());
  if (before_.empty()) return packet;
  if (packet) before_.push_back(*std::move(packet));
  MadePacket oldest = std::move(before_.front());
  before_.pop_front();
  return std::optional(std::move(oldest));
}

Result<std::optional<MadePacket>> MadeH264::Receive() {
  const int error = av_.avcodec_receive_packet(encoder_, packet_);
  if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return std::optional<MadePacket>();
  if (error < 0) return std::unexpected(Failure(error));
  MadePacket packet{
      .data = Bytes::Copy(std::as_bytes(std::span(packet_->data, static_cast<size_t>(packet_->size)))),
      .of = {},
      .key = (packet_->flags & AV_PKT_FLAG_KEY) != 0};
  if (const auto found = pictures_.find(packet_->pts); found != pictures_.end()) {
    packet.of = found->second;
    pictures_.erase(found);
  }
  av_.av_packet_unref(packet_);
  return std::optional(std::move(packet));
}

Result<std::optional<MadePacket>> MadeH264::Rest() {
  if (!before_.empty()) {
    MadePacket oldest = std::move(before_.front());
    before_.pop_front();
    return std::optional(std::move(oldest));
  }
  av_.avcodec_send_frame(encoder_, nullptr);  // an error where it knows already
  return Receive();
}

void MadeH264::Deliver(const MadePacket& packet, Instant arrived, std::deque<SourceFrame>& ready) {
  AVPacket* const coded = packet_;
  coded->data = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(packet.data.data()));
  coded->size = static_cast<int>(packet.data.size());
  coded->flags = packet.key ? AV_PKT_FLAG_KEY : 0;
  decoder_->Take(*coded,
                 {.arrived = arrived, .captured_wall = packet.of.wall, .source = CaptureSource::kPacketTime});
  coded->data = nullptr;
  coded->size = 0;
  av_.av_packet_unref(coded);
  Take(ready);
}

Status MadeH264::Reconnect(std::deque<SourceFrame>& ready) {
  End(ready);
  return OpenDecoder();
}

}  // namespace

Result<std::unique_ptr<MadeVideo>> MakeMadeH264(const MadeSpec& spec, const SourceOptions& options) {
  const Result<Libav>& av = TheLibav();
  if (!av) return std::unexpected(av.error());
  if (av->avcodec_find_encoder_by_name(kEncoder) == nullptr)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("libavcodec on this machine has no {}: give codec=mjpeg", kEncoder));
  return std::make_unique<MadeH264>(*av, spec, options);
}

#else

Result<std::unique_ptr<MadeVideo>> MakeMadeH264(const MadeSpec&, const SourceOptions&) {
  return Fail(ErrorCode::kUnsupported,
              "this build was made without libav's headers: give codec=mjpeg, or install libavcodec-dev and "
              "build again");
}

#endif

}  // namespace weir::watch
