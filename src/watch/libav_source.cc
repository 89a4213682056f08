#include "watch/libav_source.h"

#include <fmt/format.h>

#if __has_include(<libavformat/avformat.h>)
#define WEIR_HAS_LIBAV 1
#endif

#ifdef WEIR_HAS_LIBAV
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <span>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/log.h>
#include <libswscale/swscale.h>
}

namespace weir::watch {
namespace {

// Reordered_opaque is the one way of libavcodec 59 to carry a number from a packet to its frame.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// The functions in use, found by name. Linking would bind the program to a GPL build of libav.
struct Libav {
  // clang-format off: a table
#define WEIR_LIBAV_FUNCTIONS(F)                                                                            \
  F(format, avformat_version) F(format, avformat_alloc_context) F(format, avformat_open_input)             \
  F(format, avformat_find_stream_info) F(format, av_find_best_stream) F(format, av_read_frame)             \
  F(format, avformat_close_input) F(codec, avcodec_version) F(codec, avcodec_find_decoder)                 \
  F(codec, avcodec_alloc_context3) F(codec, avcodec_parameters_to_context) F(codec, avcodec_open2)         \
  F(codec, avcodec_send_packet) F(codec, avcodec_receive_frame) F(codec, avcodec_free_context)             \
  F(codec, avcodec_flush_buffers) F(codec, av_packet_alloc) F(codec, av_packet_free)                       \
  F(codec, av_packet_unref) F(codec, av_packet_get_side_data) F(util, av_frame_alloc)                      \
  F(util, av_frame_free) F(util, av_dict_set) F(util, av_dict_free) F(util, av_strerror)                   \
  F(util, av_log_set_level) F(util, avutil_version) F(scale, sws_getCachedContext) F(scale, sws_scale)     \
  F(scale, sws_freeContext) F(scale, swscale_version)
#define WEIR_DECLARE(library, name) decltype(&::name) name = nullptr;
  WEIR_LIBAV_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
  // clang-format on

  static Result<Libav> Open();
};

Result<Libav> Libav::Open() {
  const auto open = [](const char* name, unsigned major) -> Result<void*> {
    const std::string file = fmt::format("lib{}.so.{}", name, major);
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{} is not on this machine: files and RTSP need FFmpeg 5.1's libraries (apt-get install "
                    "libavformat59 libavcodec59 libswscale6)",
                    file));
  };
  Libav av;
  void* const util = TRY(open("avutil", LIBAVUTIL_VERSION_MAJOR));
  void* const codec = TRY(open("avcodec", LIBAVCODEC_VERSION_MAJOR));
  void* const format = TRY(open("avformat", LIBAVFORMAT_VERSION_MAJOR));
  void* const scale = TRY(open("swscale", LIBSWSCALE_VERSION_MAJOR));
#define WEIR_FIND(library, name)                                        \
  av.name = reinterpret_cast<decltype(av.name)>(dlsym(library, #name)); \
  if (av.name == nullptr) return Fail(ErrorCode::kUnsupported, "libav has no function " #name);
  WEIR_LIBAV_FUNCTIONS(WEIR_FIND)
#undef WEIR_FIND
  if (av.avformat_version() >> 16 != LIBAVFORMAT_VERSION_MAJOR ||
      av.avcodec_version() >> 16 != LIBAVCODEC_VERSION_MAJOR)
    return Fail(ErrorCode::kUnsupported, "libav's libraries are of another version than their names say");
  av.av_log_set_level(AV_LOG_QUIET);
  return av;
}

// Opened once, on first use; it stays open as long as the process lives.
const Result<Libav>& TheLibav() {
  static const Result<Libav> av = Libav::Open();
  return av;
}

// Whether other frames may need this packet of H.264: its first slice says so in nal_ref_idc (H.264, 7.3.1).
// `length_size`: bytes of each NAL's length; 0: start codes.
bool IsReference(const uint8_t* data, size_t size, int length_size) {
  size_t at = 0;
  while (at + 5 < size) {
    size_t nal = at;
    if (length_size > 0) {
      size_t length = 0;
      for (int i = 0; i < length_size; ++i) length = length << 8 | data[at + static_cast<size_t>(i)];
      nal = at + static_cast<size_t>(length_size);
      at = nal + std::min(length, size - std::min(nal, size));
      if (length == 0) return true;
    } else {
      if (data[at] != 0 || data[at + 1] != 0 || data[at + 2] != 1) {
        ++at;
        continue;
      }
      nal = at + 3;
      at = nal;
    }
    if (nal >= size) return true;
    const int type = data[nal] & 31;
    if (type == 1 || type == 5) return (data[nal] >> 5 & 3) != 0;
  }
  return true;
}

class LibavSource final : public Source {
 public:
  LibavSource(const Libav& av, const StreamSpec& spec, const SourceOptions& options, const Clock& clock)
      : av_(av),
        spec_(spec),
        options_(options),
        clock_(clock),
        packet_(av.av_packet_alloc()),
        frame_(av.av_frame_alloc()) {}
  ~LibavSource() override {
    Close();
    av_.av_packet_free(&packet_);
    av_.av_frame_free(&frame_);
  }

  Status Connect(Instant until) override;
  Result<std::optional<SourceFrame>> Read(Instant until) override;

 private:
  struct Sent {
    Instant arrived{};
    std::optional<Instant> captured;
    std::optional<Duration> captured_wall;
    CaptureSource source = CaptureSource::kArrival;
    Duration decode{};
  };
  bool live() const { return spec_.kind == StreamKind::kRtsp; }
  void Close();
  std::string Words(int error) const {
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_.av_strerror(error, text, sizeof text);
    return fmt::format("{}: {}", spec_.name, text);
  }
  Error ErrorOf(int error) const;
  Status OpenDecoder(const AVStream& stream);
  std::optional<Duration> PaceOf(const AVPacket& packet);
  Sent Stamp(const AVPacket& packet);
  std::optional<DropCause> SkipOf(const AVPacket& packet, const Sent& sent);
  Status Decode(const AVPacket* packet);
  void Receive(Duration spent);
  std::shared_ptr<const image::Pixels> ToPixels();
  void Unanswered();

  const Libav& av_;
  const StreamSpec spec_;
  const SourceOptions options_;
  const Clock& clock_;
  AVPacket* packet_;
  AVFrame* frame_;
  AVFormatContext* input_ = nullptr;
  AVCodecContext* decoder_ = nullptr;
  SwsContext* scaler_ = nullptr;
  Instant give_up_{};
  int stream_ = -1, length_size_ = 0;
  bool jpeg_ = false, ended_ = false, pending_ = false, skipping_to_key_ = false;
  std::optional<Instant> start_;   // when the first packet of a file is due
  std::optional<double> first_s_;  // its time stamp
  double last_s_ = 0;
  int64_t sent_count_ = 0;
  Sent paced_;                    // of a file's packet that waits for its moment
  std::map<int64_t, Sent> sent_;  // packets whose frame has not come
  std::deque<SourceFrame> ready_;
};

void LibavSource::Close() {
  if (input_ != nullptr) av_.avformat_close_input(&input_);
  if (decoder_ != nullptr) av_.avcodec_free_context(&decoder_);
  if (scaler_ != nullptr) av_.sws_freeContext(std::exchange(scaler_, nullptr));
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

Status LibavSource::Connect(Instant until) {
  Close();
  Unanswered();
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
    av_.av_dict_set(&wanted, "timeout",
                    fmt::format("{}", options_.stall_timeout / std::chrono::microseconds(1)).c_str(), 0);
  }
  // Files of this machine, and RTSP: a playlist must not lead to other protocols.
  av_.av_dict_set(&wanted, "protocol_whitelist", live() ? "rtsp,rtp,tcp,udp" : "file", 0);
  const std::string url = live() ? spec_.text : "file:" + spec_.path;
  int error = av_.avformat_open_input(&input_, url.c_str(), nullptr, &wanted);
  av_.av_dict_free(&wanted);
  if (error < 0) return std::unexpected(ErrorOf(error));
  error = av_.avformat_find_stream_info(input_, nullptr);
  if (error < 0) return std::unexpected(ErrorOf(error));
  stream_ = av_.av_find_best_stream(input_, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (stream_ < 0) return Fail(ErrorCode::kCorrupt, fmt::format("{}: it has no video", spec_.name));
  start_.reset();
  first_s_.reset();
  ended_ = false;
  return OpenDecoder(*input_->streams[stream_]);
}

Status LibavSource::OpenDecoder(const AVStream& stream) {
  const AVCodecParameters& codec = *stream.codecpar;
  if (int64_t{codec.width} * codec.height > options_.max_pixels)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("{}: {}x{} pixels are over the limit", spec_.name, codec.width, codec.height));
  jpeg_ = codec.codec_id == AV_CODEC_ID_MJPEG;
  if (jpeg_) return {};
  const AVCodec* const found = av_.avcodec_find_decoder(codec.codec_id);
  if (found == nullptr)
    return Fail(ErrorCode::kUnsupported, fmt::format("{}: there is no decoder for its codec", spec_.name));
  length_size_ = codec.codec_id == AV_CODEC_ID_H264 && codec.extradata_size > 4 && codec.extradata[0] == 1
                     ? (codec.extradata[4] & 3) + 1
                     : 0;
  decoder_ = av_.avcodec_alloc_context3(found);
  if (av_.avcodec_parameters_to_context(decoder_, &codec) < 0)
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: bad parameters", spec_.name));
  decoder_->thread_count = 1;  // more would delay each frame by one frame a thread
  decoder_->max_pixels = options_.max_pixels;
  if (const int error = av_.avcodec_open2(decoder_, found, nullptr); error < 0)
    return std::unexpected(ErrorOf(error));
  return {};
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

LibavSource::Sent LibavSource::Stamp(const AVPacket& packet) {
  Sent sent{.arrived = clock_.Now()};
  if (!live()) {
    if (const auto due = PaceOf(packet)) {
      sent.captured = *start_ + *due;
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

// Whether the policy leaves the packet out, given how far the stream is behind.
std::optional<DropCause> LibavSource::SkipOf(const AVPacket& packet, const Sent& sent) {
  Duration behind{};
  if (sent.captured) behind = sent.arrived - *sent.captured;
  if (sent.captured_wall) behind = WallTime() - *sent.captured_wall;
  const bool key = (packet.flags & AV_PKT_FLAG_KEY) != 0;
  if (options_.skip_to_key && behind > options_.deadline) skipping_to_key_ = true;
  if (skipping_to_key_ && key) {
    skipping_to_key_ = false;
    if (decoder_ != nullptr) av_.avcodec_flush_buffers(decoder_);
    Unanswered();
  }
  if (skipping_to_key_) return DropCause::kToKeyFrame;
  const bool reference = (packet.flags & AV_PKT_FLAG_DISPOSABLE) == 0 &&
                         (decoder_ == nullptr || decoder_->codec_id != AV_CODEC_ID_H264 ||
                          IsReference(packet.data, static_cast<size_t>(packet.size), length_size_));
  if (options_.skip_non_reference && behind > options_.deadline / 2 && !reference && !key)
    return DropCause::kNonReference;
  return std::nullopt;
}

// Packets that the decoder will give no frame of any more.
void LibavSource::Unanswered() {
  for (const auto& [number, sent] : sent_)
    ready_.push_back({.arrived = sent.arrived, .dropped = DropCause::kUndecodable});
  sent_.clear();
}

std::shared_ptr<const image::Pixels> LibavSource::ToPixels() {
  int shrink = options_.shrink_for ? options_.shrink_for(frame_->width, frame_->height) : 1;
  while (shrink > 1 && frame_->width / shrink < 160) shrink /= 2;
  auto pixels = std::make_shared<image::Pixels>();
  pixels->width = std::max(1, frame_->width / shrink);
  pixels->height = std::max(1, frame_->height / shrink);
  pixels->channels = 3;
  scaler_ = av_.sws_getCachedContext(
      scaler_, frame_->width, frame_->height, static_cast<AVPixelFormat>(frame_->format), pixels->width,
      pixels->height, AV_PIX_FMT_RGB24, shrink > 1 ? SWS_AREA : SWS_FAST_BILINEAR, nullptr, nullptr, nullptr);
  if (scaler_ == nullptr) return nullptr;
  constexpr size_t kSlack = 64;  // the library may write past a row's end
  const int step = pixels->width * 3;
  pixels->data.resize(static_cast<size_t>(step) * static_cast<size_t>(pixels->height) + kSlack);
  uint8_t* const planes[4] = {pixels->data.data(), nullptr, nullptr, nullptr};
  const int steps[4] = {step, 0, 0, 0};
  av_.sws_scale(scaler_, frame_->data, frame_->linesize, 0, frame_->height, planes, steps);
  pixels->data.resize(static_cast<size_t>(step) * static_cast<size_t>(pixels->height));
  return pixels;
}

void LibavSource::Receive(Duration spent) {
  while (true) {
    const Duration before = ThreadCpuTime();
    if (av_.avcodec_receive_frame(decoder_, frame_) < 0) return;
    const auto found = sent_.find(frame_->reordered_opaque);
    if (found == sent_.end()) continue;
    const bool damaged = frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0;
    SourceFrame frame{.arrived = found->second.arrived,
                      .captured = found->second.captured,
                      .captured_wall = found->second.captured_wall,
                      .capture_source = found->second.source};
    sent_.erase(found);
    if (!damaged) frame.pixels = ToPixels();
    if (!frame.pixels) {
      frame.dropped = DropCause::kUndecodable;
      frame.fault = "damaged";
      frame.fault_words = "the decoder found errors in a frame";
    }
    frame.decode_time = spent + ThreadCpuTime() - before;
    spent = {};
    ready_.push_back(std::move(frame));
  }
}

Status LibavSource::Decode(const AVPacket* packet) {
  const Duration before = ThreadCpuTime();
  const int error = av_.avcodec_send_packet(decoder_, packet);
  Receive(ThreadCpuTime() - before);
  if (error < 0 && error != AVERROR_EOF) {
    const auto last = sent_.empty() ? sent_.end() : std::prev(sent_.end());
    if (last != sent_.end()) {
      ready_.push_back({.arrived = last->second.arrived,
                        .dropped = DropCause::kUndecodable,
                        .fault = "damaged",
                        .fault_words = Words(error)});
      sent_.erase(last);
    }
  }
  return {};
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
        if (decoder_ != nullptr) TRY_STATUS(Decode(nullptr));
        Unanswered();
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
    if (!live() && paced_.captured && clock_.Now() < *paced_.captured) {
      SleepUntil(std::min(until, *paced_.captured));
      if (clock_.Now() < *paced_.captured) return Fail(ErrorCode::kDeadline, "no frame is due yet");
    }
    pending_ = false;
    Sent sent = live() ? Stamp(*packet_) : paced_;
    sent.arrived = clock_.Now();
    if (const auto skip = SkipOf(*packet_, sent)) {
      ready_.push_back({.arrived = sent.arrived, .dropped = *skip});
    } else if (jpeg_) {
      ready_.push_back(
          {.jpeg = Bytes::Copy(std::as_bytes(std::span(packet_->data, static_cast<size_t>(packet_->size)))),
           .arrived = sent.arrived,
           .captured = sent.captured,
           .captured_wall = sent.captured_wall,
           .capture_source = sent.source});
    } else {
      decoder_->reordered_opaque = sent_count_;
      sent_[sent_count_++] = sent;
      TRY_STATUS(Decode(packet_));
    }
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
