#include "watch/libav_source.h"

#include <fmt/format.h>

#include "watch/libav_decoder.h"

#ifdef WEIR_HAS_LIBAV
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace weir::watch {
namespace {

class LibavSource final : public Source {
 public:
  LibavSource(const Libav& av, const StreamSpec& spec, const SourceOptions& options, const Clock& clock)
      : av_(av),
        spec_(spec),
        options_(options),
        clock_(clock),
        packet_(av.av_packet_alloc()),
        decoder_(av, spec_.name, options_, ready_) {}
  ~LibavSource() override {
    Close();
    av_.av_packet_free(&packet_);
  }

  Status Connect(Instant until) override;
  Result<std::optional<SourceFrame>> Read(Instant until) override;
  std::deque<SourceFrame> Leave() override {
    decoder_.Leave();
    return std::move(ready_);
  }

 private:
  bool live() const { return spec_.kind == StreamKind::kRtsp; }
  void Close();
  std::string Words(int error) const { return fmt::format("{}: {}", spec_.name, av_.Words(error)); }
  Error ErrorOf(int error) const;
  int Probe();
  std::optional<Duration> PaceOf(const AVPacket& packet);
  Duration ShownAfter(const AVPacket& packet) const;
  PacketOrigin Stamp(const AVPacket& packet);

  const Libav& av_;
  const StreamSpec spec_;
  const SourceOptions options_;
  const Clock& clock_;
  AVPacket* packet_;
  std::deque<SourceFrame> ready_;
  LibavDecoder decoder_;
  AVFormatContext* input_ = nullptr;
  Instant give_up_{};
  int stream_ = -1;
  bool ended_ = false, pending_ = false;
  std::optional<Instant> start_;   // when the first packet of a file is due
  std::optional<double> first_s_;  // its time stamp
  double last_s_ = 0;
  PacketOrigin paced_;          // of a file's packet that waits for its moment
  std::optional<Instant> due_;  // that moment
};

void LibavSource::Close() {
  if (input_ != nullptr) av_.avformat_close_input(&input_);
}

Error LibavSource::ErrorOf(int error) const {
  if (error == AVERROR_EXIT) return {ErrorCode::kDeadline, fmt::format("{}: no answer in time", spec_.name)};
  if (error == AVERROR_HTTP_UNAUTHORIZED)
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: status 401: it wants a user and a password", spec_.name)};
  if (error == AVERROR_HTTP_NOT_FOUND || error == AVERROR_HTTP_FORBIDDEN)
    return {ErrorCode::kInvalidArgument, Words(error)};
  if (error == AVERROR_INVALIDDATA) return {ErrorCode::kCorrupt, Words(error)};
  return {ErrorCode::kIo, Words(error)};
}

// Reads frames until the streams are known, in decoders with the limit on pixels.
int LibavSource::Probe() {
  std::vector<AVDictionary*> limits(input_->nb_streams, nullptr);
  for (AVDictionary*& each : limits)
    av_.av_dict_set(&each, "max_pixels", fmt::format("{}", options_.max_pixels).c_str(), 0);
  const int error = av_.avformat_find_stream_info(input_, limits.empty() ? nullptr : limits.data());
  for (AVDictionary*& each : limits) av_.av_dict_free(&each);
  return error;
}

Status LibavSource::Connect(Instant until) {
  Close();
  give_up_ = until;
  input_ = av_.avformat_alloc_context();
  input_->interrupt_callback = {[](void* self) {
                                  const auto* source = static_cast<const LibavSource*>(self);
                                  return source->clock_.Now() > source->give_up_ ? 1 : 0;
                                },
                                this};
  AVDictionary* wanted = nullptr;
  if (live()) {
    av_.av_dict_set(&wanted, "rtsp_transport", "tcp", 0);
    // Frames that are read to find out about the stream wait meanwhile, and miss their deadline.
    av_.av_dict_set(&wanted, "analyzeduration", "500000", 0);
    av_.av_dict_set(&wanted, "fpsprobesize", "0", 0);
    av_.av_dict_set(&wanted, "timeout",
                    fmt::format("{}", options_.stall_timeout / std::chrono::microseconds(1)).c_str(), 0);
  }
  // Files of this machine, and RTSP: a playlist must not lead to other protocols.
  av_.av_dict_set(&wanted, "protocol_whitelist", live() ? "rtsp,rtp,tcp,udp" : "file", 0);
  const std::string url = live() ? spec_.text : "file:" + spec_.path;
  int error = av_.avformat_open_input(&input_, url.c_str(), nullptr, &wanted);
  av_.av_dict_free(&wanted);
  if (error < 0) return std::unexpected(ErrorOf(error));
  error = Probe();
  if (error < 0) return std::unexpected(ErrorOf(error));
  stream_ = av_.av_find_best_stream(input_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (stream_ < 0) return Fail(ErrorCode::kCorrupt, fmt::format("{}: it has no video", spec_.name));
  start_.reset();
  first_s_.reset();
  ended_ = false;
  return decoder_.Open(*input_->streams[stream_]->codecpar);
}

// A file's packet is due at its decoding time after the first one's. nullopt where it has no time, or an
// absurd one.
std::optional<Duration> LibavSource::PaceOf(const AVPacket& packet) {
  const int64_t stamp = packet.dts != AV_NOPTS_VALUE ? packet.dts : packet.pts;
  if (stamp == AV_NOPTS_VALUE) return std::nullopt;
  const AVRational base = input_->streams[stream_]->time_base;
  const double seconds = static_cast<double>(stamp) * base.num / base.den;
  constexpr double kMostJump = 10;
  if (!first_s_ || seconds < last_s_ || seconds > last_s_ + kMostJump) {
    // Begins, or jumps: what follows is paced from here on.
    start_ = std::max(clock_.Now(), start_ ? *start_ + FromSeconds(last_s_ - *first_s_) : clock_.Now());
    first_s_ = seconds;
  }
  last_s_ = seconds;
  return FromSeconds(seconds - *first_s_);
}

// How long after it is due a file's packet is shown: a frame that others are made of comes before them.
Duration LibavSource::ShownAfter(const AVPacket& packet) const {
  if (packet.pts == AV_NOPTS_VALUE || packet.dts == AV_NOPTS_VALUE || packet.pts <= packet.dts) return {};
  const AVRational base = input_->streams[stream_]->time_base;
  const double seconds =
      (static_cast<double>(packet.pts) - static_cast<double>(packet.dts)) * base.num / base.den;
  constexpr double kMost = 10;
  return seconds < kMost ? FromSeconds(seconds) : Duration{};
}

PacketOrigin LibavSource::Stamp(const AVPacket& packet) {
  PacketOrigin sent{.arrived = clock_.Now()};
  if (!live()) {
    due_.reset();
    if (const auto due = PaceOf(packet)) {
      due_ = *start_ + *due;
      sent.captured = *due_ + ShownAfter(packet);
      sent.source = CaptureSource::kFileTime;
    }
    return sent;
  }
  size_t size = 0;
  const uint8_t* const data = av_.av_packet_get_side_data(&packet, AV_PKT_DATA_PRFT, &size);
  if (data != nullptr && size >= sizeof(AVProducerReferenceTime)) {
    const auto* time = reinterpret_cast<const AVProducerReferenceTime*>(data);
    sent.captured_wall = std::chrono::microseconds(time->wallclock);
    sent.source = CaptureSource::kSenderReport;
  }
  return sent;
}

Result<std::optional<SourceFrame>> LibavSource::Read(Instant until) {
  while (ready_.empty()) {
    if (ended_) return std::optional<SourceFrame>();
    if (!pending_) {
      // Breaking off a read half-way would damage the stream: only a stall does.
      give_up_ = clock_.Now() + options_.stall_timeout;
      const int error = av_.av_read_frame(input_, packet_);
      if (error == AVERROR_EOF && !live()) {
        ended_ = true;
        decoder_.Finish();
        continue;
      }
      if (error < 0) return std::unexpected(ErrorOf(error));
      if (packet_->stream_index != stream_) {
        av_.av_packet_unref(packet_);
        continue;
      }
      pending_ = true;
      if (!live()) paced_ = Stamp(*packet_);
    }
    if (!live() && due_ && clock_.Now() < *due_) {
      SleepUntil(std::min(until, *due_));
      if (clock_.Now() < *due_) return Fail(ErrorCode::kDeadline, "no frame is due yet");
    }
    pending_ = false;
    PacketOrigin origin = live() ? Stamp(*packet_) : paced_;
    origin.arrived = clock_.Now();
    decoder_.Take(*packet_, origin);
    av_.av_packet_unref(packet_);
  }
  SourceFrame frame = std::move(ready_.front());
  ready_.pop_front();
  return std::optional(std::move(frame));
}

}  // namespace

Result<std::unique_ptr<Source>> MakeLibavSource(const StreamSpec& spec, const SourceOptions& options,
                                                const Clock& clock) {
  const Result<Libav>& av = TheLibav();
  if (!av) return Context("stream " + spec.name, av.error());
  return std::make_unique<LibavSource>(*av, spec, options, clock);
}

}  // namespace weir::watch

#else

namespace weir::watch {

Result<std::unique_ptr<Source>> MakeLibavSource(const StreamSpec& spec, const SourceOptions&, const Clock&) {
  return Fail(ErrorCode::kUnsupported,
              "stream " + spec.name +
                  ": this build was made without libav's headers: install libavformat-dev and build again");
}

}  // namespace weir::watch

#endif
