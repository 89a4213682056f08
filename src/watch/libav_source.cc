#include "watch/libav_source.h"

#include <fmt/format.h>

#include "watch/libav_decoder.h"

#ifdef WEIR_HAS_LIBAV
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <deque>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/count.h"
#include "base/secrets.h"
#include "http/tcp.h"
#include "watch/file_pace.h"
#include "watch/stream_url.h"

namespace weir::watch {
namespace {

Status CheckFile(const StreamSpec& spec) {
  struct stat facts{};
  if (::stat(spec.path.c_str(), &facts) != 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}", spec.name, std::generic_category().message(errno)));
  }
  if (S_ISREG(facts.st_mode)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}", spec.name,
                          S_ISCHR(facts.st_mode) ? "a device: for a camera give v4l2:PATH"
                                                 : "no regular file: give a file with video"));
}

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
  Status OpenInput(Instant until);
  Status Probe();
  Error ErrorOf(int error) const;
  Error FileError(int error) const;
  void End(int error);
  Result<bool> Advance(Instant until);
  std::optional<double> SecondsOf(int64_t stamp) const;
  double RateOf() const;
  void Pace(const AVPacket& packet);
  PacketOrigin StampLive(const AVPacket& packet);
  void NoteLosses(const AVPacket& packet);
  SourceFrame TakeReady();

  const Libav& av_;
  const StreamSpec spec_;
  const SourceOptions options_;
  const Clock& clock_;
  AVPacket* packet_;
  std::deque<SourceFrame> ready_;
  LibavDecoder decoder_;
  AVFormatContext* input_ = nullptr;
  LibavLosses losses_;
  Instant give_up_{}, silent_{};  // when a call of the library ends, and when it has had no answer
  int stream_ = -1;
  bool pending_ = false;
  std::optional<Status> end_;  // what Read returns when `ready_` is empty
  // A file: when its first packet was due, and the moments of the packet that waits.
  FilePace pace_;
  std::optional<Instant> start_;
  PacketOrigin paced_;
  std::optional<Instant> due_;
  // A live stream: the latest time stamp, and what Read tells with its next frame.
  std::optional<double> newest_s_;
  double period_s_ = 0;
  int64_t lost_frames_ = 0, lost_packets_ = 0;
};

void LibavSource::Close() {
  if (input_ != nullptr) av_.avformat_close_input(&input_);
}

Error LibavSource::ErrorOf(int error) const {
  if (!live()) return FileError(error);
  const std::string words = fmt::format("{}: {}", spec_.name, av_.Words(error));
  // An answer that does not come ends in any of several errors of the library.
  if (error == AVERROR_EXIT || error == AVERROR(ETIMEDOUT) || clock_.Now() >= silent_)
    return {ErrorCode::kDeadline, fmt::format("{}: no answer in time", spec_.name)};
  if (error == AVERROR_HTTP_UNAUTHORIZED)
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: status 401: {}", spec_.name,
                        EndOfUser(spec_.text) == 0
                            ? "it wants a user and a password: rtsp://USER:PASSWORD@HOST/..."
                            : fmt::format("the user or the password is wrong; {}", kEncodeAdvice))};
  if (error == AVERROR_HTTP_NOT_FOUND || error == AVERROR_HTTP_FORBIDDEN)
    return {ErrorCode::kInvalidArgument, words};
  if (error == AVERROR_INVALIDDATA) return {ErrorCode::kCorrupt, words};
  const auto url = SplitStreamUrl(spec_.text, kRtspPort);
  if (const auto found = url ? http::Resolve(url->server) : std::unexpected(url.error()); !found)
    return {ErrorCode::kIo, fmt::format("{}: {}", spec_.name, found.error().message)};
  return {ErrorCode::kIo, words};
}

Error LibavSource::FileError(int error) const {
  if (error == AVERROR_EXIT)
    return {ErrorCode::kIo, fmt::format("{}: its storage does not answer", spec_.name)};
  if (error == AVERROR_INVALIDDATA)
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: it is no video that libav can read, or a damaged one", spec_.name)};
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", spec_.name, av_.Words(error))};
}

// Reads frames until the streams are known, in decoders with the limit on pixels.
Status LibavSource::Probe() {
  std::vector<AVDictionary*> limits(input_->nb_streams, nullptr);
  for (AVDictionary*& each : limits)
    av_.av_dict_set(&each, "max_pixels", fmt::format("{}", options_.max_pixels).c_str(), 0);
  const int error = av_.avformat_find_stream_info(input_, limits.empty() ? nullptr : limits.data());
  for (AVDictionary*& each : limits) av_.av_dict_free(&each);
  if (error < 0) return std::unexpected(ErrorOf(error));
  stream_ = av_.av_find_best_stream(input_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (stream_ < 0)
    return Fail(live() ? ErrorCode::kCorrupt : ErrorCode::kInvalidArgument,
                fmt::format("{}: it has no video", spec_.name));
  return {};
}

Status LibavSource::OpenInput(Instant until) {
  Close();
  give_up_ = until;
  silent_ = std::min(until, clock_.Now() + options_.stall_timeout);
  losses_.packets = 0;
  input_ = av_.avformat_alloc_context();
  input_->opaque = &losses_;
  input_->interrupt_callback = {[](void* self) {
                                  const auto* source = static_cast<const LibavSource*>(self);
                                  return source->clock_.Now() > source->give_up_ ? 1 : 0;
                                },
                                this};
  AVDictionary* wanted = nullptr;
  if (live()) {
    av_.av_dict_set(&wanted, "rtsp_transport", "tcp", 0);
    // The library counts missing packets only where it has a queue to put them in order.
    av_.av_dict_set(&wanted, "reorder_queue_size", "2", 0);
    // Frames that are read to find out about the stream wait meanwhile, and miss their deadline.
    av_.av_dict_set(&wanted, "analyzeduration", "500000", 0);
    av_.av_dict_set(&wanted, "fpsprobesize", "0", 0);
    av_.av_dict_set(&wanted, "timeout",
                    fmt::format("{}", options_.stall_timeout / std::chrono::microseconds(1)).c_str(), 0);
  }
  // Files of this machine, and RTSP: a playlist must not lead to other protocols.
  av_.av_dict_set(&wanted, "protocol_whitelist", live() ? "rtsp,rtp,tcp,udp" : "file", 0);
  const std::string url = live() ? WithEncodedUser(spec_.text) : "file:" + spec_.path;
  const int error = av_.avformat_open_input(&input_, url.c_str(), nullptr, &wanted);
  av_.av_dict_free(&wanted);
  if (error < 0) return std::unexpected(ErrorOf(error));
  return {};
}

Status LibavSource::Connect(Instant until) {
  if (!live()) TRY_STATUS(CheckFile(spec_));
  TRY_STATUS(OpenInput(until));
  TRY_STATUS(Probe());
  pace_ = FilePace((input_->iformat->flags & AVFMT_TS_DISCONT) != 0 ? FilePace::Stamps::kMayJump
                                                                    : FilePace::Stamps::kContinuous);
  start_.reset();
  due_.reset();
  newest_s_.reset();
  period_s_ = 0;
  end_.reset();
  pending_ = false;
  const AVStream& stream = *input_->streams[stream_];
  std::optional<image::Turn> turn = image::Turn{};
  size_t size = 0;
  const uint8_t* const matrix = av_.av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  if (matrix != nullptr && size >= 9 * sizeof(int32_t))
    turn = TurnOfMatrix(std::span<const int32_t, 9>(reinterpret_cast<const int32_t*>(matrix), 9));
  return decoder_.Open(*stream.codecpar, turn);
}

std::optional<double> LibavSource::SecondsOf(int64_t stamp) const {
  if (stamp == AV_NOPTS_VALUE) return std::nullopt;
  const AVRational base = input_->streams[stream_]->time_base;
  return static_cast<double>(stamp) * base.num / base.den;
}

// Frames a second, as the stream says or its first frames show.
double LibavSource::RateOf() const {
  constexpr double kUsual = 25;  // of ffmpeg, for streams that say nothing
  const AVRational rate = av_.av_guess_frame_rate(input_, input_->streams[stream_], nullptr);
  const double value = rate.den > 0 ? static_cast<double>(rate.num) / rate.den : 0;
  return value > 0.001 && value < 10'000 ? value : kUsual;
}

// Sets the moments of a file's packet. One that is to be discarded takes no time.
void LibavSource::Pace(const AVPacket& packet) {
  const Instant now = clock_.Now();
  paced_ = {.arrived = now};
  due_.reset();
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return;
  const double length = SecondsOf(packet.duration > 0 ? packet.duration : AV_NOPTS_VALUE).value_or(0);
  const FilePace::Due due = pace_.Next({.decoded_s = SecondsOf(packet.dts),
                                        .shown_s = SecondsOf(packet.pts),
                                        .length_s = length > 0 ? length : 1 / RateOf()});
  if (!start_) start_ = now;
  due_ = *start_ + due.read;
  paced_.captured = *start_ + due.shown;
  paced_.source = CaptureSource::kFileTime;
}

PacketOrigin LibavSource::StampLive(const AVPacket& packet) {
  PacketOrigin sent{.arrived = clock_.Now()};
  size_t size = 0;
  const uint8_t* const data = av_.av_packet_get_side_data(&packet, AV_PKT_DATA_PRFT, &size);
  if (data != nullptr && size >= sizeof(AVProducerReferenceTime)) {
    const auto* time = reinterpret_cast<const AVProducerReferenceTime*>(data);
    sent.captured_wall = std::chrono::microseconds(time->wallclock);
    sent.source = CaptureSource::kSenderReport;
  }
  return sent;
}

// Counts packets that RTP's sequence numbers show to be missing, and the frames that its time stamps show to
// be missing there.
void LibavSource::NoteLosses(const AVPacket& packet) {
  const int64_t missed = losses_.packets.exchange(0);
  const auto stamp = SecondsOf(packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts);
  const double gap = stamp && newest_s_ ? *stamp - *newest_s_ : 0;
  if (missed > 0) {
    lost_packets_ += missed;
    const double period = period_s_ > 0 ? period_s_ : 1 / RateOf();
    constexpr double kMostGap = 60;
    if (gap > 0 && gap < kMostGap) lost_frames_ += std::max<int64_t>(0, std::llround(gap / period) - 1);
  } else if (gap > 0) {
    period_s_ = gap;
  }
  if (stamp) newest_s_ = std::max(*stamp, newest_s_.value_or(*stamp));
}

// The input has ended: the decoder gives what it holds, and then Read tells of the end.
void LibavSource::End(int error) {
  end_ = Status();
  if (live()) {
    end_ = std::unexpected(ErrorOf(error));
  } else if (error != AVERROR_EOF) {
    end_ = Fail(error == AVERROR_INVALIDDATA ? ErrorCode::kCorrupt : ErrorCode::kIo,
                fmt::format("{}: it ends early: {}", spec_.name, av_.Words(error)));
  }
  decoder_.Finish();
}

// Brings one packet to the decoder. False: it is not due before `until`.
Result<bool> LibavSource::Advance(Instant until) {
  if (!pending_) {
    // Breaking off a read half-way would damage the stream: only a stall does.
    give_up_ = silent_ = clock_.Now() + options_.stall_timeout;
    const int error = av_.av_read_frame(input_, packet_);
    if (error < 0) {
      End(error);
      return true;
    }
    if (packet_->stream_index != stream_) {
      av_.av_packet_unref(packet_);
      return true;
    }
    pending_ = true;
    if (live()) {
      NoteLosses(*packet_);
    } else {
      Pace(*packet_);
    }
  }
  if (due_ && clock_.Now() < *due_) {
    SleepUntil(std::min(until, *due_));
    if (clock_.Now() < *due_) return false;
  }
  pending_ = false;
  PacketOrigin origin = live() ? StampLive(*packet_) : paced_;
  origin.arrived = clock_.Now();
  decoder_.Take(*packet_, origin);
  av_.av_packet_unref(packet_);
  return true;
}

SourceFrame LibavSource::TakeReady() {
  SourceFrame frame = std::move(ready_.front());
  ready_.pop_front();
  frame.lost_before += std::exchange(lost_frames_, 0);
  if (lost_packets_ > 0 && frame.fault.empty()) {
    frame.fault = "packets-lost";
    frame.fault_words =
        fmt::format("{}: {} missing by their sequence numbers", spec_.name, Count(lost_packets_, "packet"));
    frame.fault_count = std::exchange(lost_packets_, 0);
  }
  return frame;
}

Result<std::optional<SourceFrame>> LibavSource::Read(Instant until) {
  while (ready_.empty()) {
    if (end_) {
      if (!*end_) return std::unexpected(end_->error());
      return std::optional<SourceFrame>();
    }
    if (!TRY(Advance(until))) return Fail(ErrorCode::kDeadline, "no frame is due yet");
  }
  return std::optional(TakeReady());
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
