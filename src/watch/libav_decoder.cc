#include "watch/libav_decoder.h"

#ifdef WEIR_HAS_LIBAV
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace weir::watch {

// Reordered_opaque is the one way of libavcodec 59 to carry a number from a packet to its frame.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

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

namespace {

constexpr int kMostErrors = 1000;

bool IsFullRange(const AVFrame& frame) {
  return frame.color_range == AVCOL_RANGE_JPEG ||
         (frame.color_range == AVCOL_RANGE_UNSPECIFIED && frame.format == AV_PIX_FMT_YUVJ420P);
}

// As libswscale has it: BT.601 where the stream says nothing.
image::YuvColours ColoursOf(const AVFrame& frame) {
  image::YuvColours colours;
  if (frame.colorspace == AVCOL_SPC_BT709) colours = {.red = 0.2126, .blue = 0.0722};
  if (frame.colorspace == AVCOL_SPC_FCC) colours = {.red = 0.3, .blue = 0.11};
  if (frame.colorspace == AVCOL_SPC_SMPTE240M) colours = {.red = 0.212, .blue = 0.087};
  if (frame.colorspace == AVCOL_SPC_BT2020_NCL || frame.colorspace == AVCOL_SPC_BT2020_CL)
    colours = {.red = 0.2627, .blue = 0.0593};
  colours.full_range = IsFullRange(frame);
  return colours;
}

bool IsIdentity(const image::Turn& turn) { return !turn.transposed && !turn.mirror_x && !turn.mirror_y; }

}  // namespace

LibavDecoder::LibavDecoder(const Libav& av, std::string name, const SourceOptions& options,
                           std::deque<SourceFrame>& ready)
    : av_(av), name_(std::move(name)), options_(options), ready_(ready), frame_(av.av_frame_alloc()) {}

LibavDecoder::~LibavDecoder() {
  Close();
  av_.av_frame_free(&frame_);
}

void LibavDecoder::Close() {
  if (decoder_ != nullptr) av_.avcodec_free_context(&decoder_);
  if (scaler_ != nullptr) av_.sws_freeContext(std::exchange(scaler_, nullptr));
}

Status LibavDecoder::Open(const AVCodecParameters& codec, std::optional<image::Turn> turn) {
  Close();
  Unanswered(DropCause::kUndecodable);
  turn_ = turn;
  skipping_to_key_ = false;
  if (int64_t{codec.width} * codec.height > options_.max_pixels)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("{}: {}x{} pixels are over the limit", name_, codec.width, codec.height));
  const AVCodec* const found = av_.avcodec_find_decoder(codec.codec_id);
  if (found == nullptr)
    return Fail(ErrorCode::kUnsupported, fmt::format("{}: there is no decoder for its codec", name_));
  length_size_ = codec.codec_id == AV_CODEC_ID_H264 && codec.extradata_size > 4 && codec.extradata[0] == 1
                     ? (codec.extradata[4] & 3) + 1
                     : 0;
  decoder_ = av_.avcodec_alloc_context3(found);
  if (av_.avcodec_parameters_to_context(decoder_, &codec) < 0)
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: bad parameters", name_));
  decoder_->thread_count = 1;  // more would delay each frame by one frame a thread
  decoder_->max_pixels = options_.max_pixels;
  if (const int error = av_.avcodec_open2(decoder_, found, nullptr); error < 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: its decoder cannot be opened: {}", name_, av_.Words(error)));
  return {};
}

// Whether the policy leaves the packet out, given how far the stream is behind.
std::optional<DropCause> LibavDecoder::SkipOf(const AVPacket& packet, const PacketOrigin& origin) {
  Duration behind{};
  if (origin.captured) behind = origin.arrived - *origin.captured;
  if (origin.captured_wall) behind = WallTime() - *origin.captured_wall;
  const bool key = (packet.flags & AV_PKT_FLAG_KEY) != 0;
  if (options_.skip_to_key && behind > options_.deadline) skipping_to_key_ = true;
  if (skipping_to_key_ && key) {
    skipping_to_key_ = false;
    av_.avcodec_flush_buffers(decoder_);
    Unanswered(DropCause::kToKeyFrame);
  }
  if (skipping_to_key_) return DropCause::kToKeyFrame;
  const bool reference = (packet.flags & AV_PKT_FLAG_DISPOSABLE) == 0 &&
                         (decoder_->codec_id != AV_CODEC_ID_H264 ||
                          IsReference(packet.data, static_cast<size_t>(packet.size), length_size_));
  if (options_.skip_non_reference && behind > options_.deadline / 2 && !reference && !key)
    return DropCause::kNonReference;
  return std::nullopt;
}

// The decoder begins anew: none of the packets that it held becomes a frame.
void LibavDecoder::Unanswered(DropCause cause) {
  for (const auto& [number, sent] : sent_) {
    if (!sent.discarded) ready_.push_back({.arrived = sent.origin.arrived, .dropped = cause});
  }
  sent_.clear();
  first_given_.reset();
  last_given_.reset();
}

// Forgets packets that made no frame of their own: those that later ones have overtaken by more than any
// codec reorders. Those before the first frame lacked their key frame.
void LibavDecoder::ForgetSwallowed() {
  constexpr int64_t kMostReordered = 33;  // 16 frames of two fields
  while (!sent_.empty() && first_given_ && sent_.begin()->first < *last_given_ - kMostReordered) {
    const auto& [number, sent] = *sent_.begin();
    if (!sent.discarded && number < *first_given_)
      ready_.push_back({.arrived = sent.origin.arrived, .dropped = DropCause::kUndecodable});
    sent_.erase(sent_.begin());
  }
}

// The decoder's own planes, without a copy. nullptr for a format that is not 4:2:0 of 8 bits.
std::shared_ptr<const image::PlanarPixels> LibavDecoder::TakePlanes() {
  if (frame_->format != AV_PIX_FMT_YUV420P && frame_->format != AV_PIX_FMT_YUVJ420P) return nullptr;
  const std::shared_ptr<AVFrame> held(av_.av_frame_alloc(),
                                      [&av = av_](AVFrame* frame) { av.av_frame_free(&frame); });
  av_.av_frame_move_ref(held.get(), frame_);
  auto* const picture =
      new image::PlanarPixels{.width = held->width, .height = held->height, .colours = ColoursOf(*held)};
  for (size_t i = 0; i < 3; ++i) {
    picture->planes[i] = held->data[i];
    picture->steps[i] = held->linesize[i];
  }
  return {picture, [held](const image::PlanarPixels* each) { delete each; }};
}

// For other formats.
std::shared_ptr<const image::Pixels> LibavDecoder::ToPixels() {
  int shrink = options_.shrink_for ? options_.shrink_for(frame_->width, frame_->height) : 1;
  while (shrink > 1 && frame_->width / shrink < 160) shrink /= 2;
  auto pixels = std::make_shared<image::Pixels>();
  pixels->width = std::max(1, frame_->width / shrink);
  pixels->height = std::max(1, frame_->height / shrink);
  pixels->channels = 3;
  const int method = (shrink > 1 ? SWS_AREA : SWS_BICUBIC) | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT;
  scaler_ = av_.sws_getCachedContext(scaler_, frame_->width, frame_->height,
                                     static_cast<AVPixelFormat>(frame_->format), pixels->width,
                                     pixels->height, AV_PIX_FMT_RGB24, method, nullptr, nullptr, nullptr);
  if (scaler_ == nullptr) return nullptr;
  SetColours();
  constexpr size_t kSlack = 64;  // the library may write past a row's end
  const int step = pixels->width * 3;
  pixels->data.resize(static_cast<size_t>(step) * static_cast<size_t>(pixels->height) + kSlack);
  uint8_t* const planes[4] = {pixels->data.data(), nullptr, nullptr, nullptr};
  const int steps[4] = {step, 0, 0, 0};
  av_.sws_scale(scaler_, frame_->data, frame_->linesize, 0, frame_->height, planes, steps);
  pixels->data.resize(static_cast<size_t>(step) * static_cast<size_t>(pixels->height));
  return pixels;
}

// The matrix and the range that the frame names; the library's own are those of BT.601.
void LibavDecoder::SetColours() {
  int *from_table = nullptr, *to_table = nullptr;
  int from_full = 0, to_full = 0, brightness = 0, contrast = 0, saturation = 0;
  if (av_.sws_getColorspaceDetails(scaler_, &from_table, &from_full, &to_table, &to_full, &brightness,
                                   &contrast, &saturation) < 0)
    return;
  if (frame_->color_range != AVCOL_RANGE_UNSPECIFIED) from_full = IsFullRange(*frame_) ? 1 : 0;
  av_.sws_setColorspaceDetails(scaler_, av_.sws_getCoefficients(frame_->colorspace), from_full, to_table,
                               to_full, brightness, contrast, saturation);
}

// Upright pixels of frame_.
void LibavDecoder::TakePicture(SourceFrame& frame) {
  std::optional<image::Turn> turn = turn_;
  const AVFrameSideData* const side = av_.av_frame_get_side_data(frame_, AV_FRAME_DATA_DISPLAYMATRIX);
  if (side != nullptr && side->size >= 9 * sizeof(int32_t))
    turn = TurnOfMatrix(std::span<const int32_t, 9>(reinterpret_cast<const int32_t*>(side->data), 9));
  if (!turn) {
    frame.fault = "unsupported";
    frame.fault_words = name_ + ": its pictures are turned by an angle that is no right one; they stay so";
  }
  frame.planar = TakePlanes();
  if (!frame.planar) frame.pixels = ToPixels();
  if (!turn || IsIdentity(*turn)) return;
  if (turn->transposed) std::swap(frame.width, frame.height);
  if (frame.planar) frame.planar = Turned(*frame.planar, *turn);
  if (frame.pixels) frame.pixels = std::make_shared<const image::Pixels>(Turned(*frame.pixels, *turn));
}

// Adds the decoded frame_.
void LibavDecoder::Emit(const PacketOrigin& origin, Duration spent) {
  const Duration before = ThreadCpuTime();
  const bool damaged = frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0;
  SourceFrame frame{.arrived = origin.arrived,
                    .captured = origin.captured,
                    .captured_wall = origin.captured_wall,
                    .capture_source = origin.source,
                    .width = frame_->width,
                    .height = frame_->height};
  if (frame.captured) {  // at the latest when the decoder gives the frame, and not before it arrived
    frame.captured = std::min(*frame.captured, std::max(last_arrived_, frame.arrived));
    frame.arrived = std::max(frame.arrived, *frame.captured);
  }
  TakePicture(frame);
  if (damaged) {
    frame.fault = "damaged";
    frame.fault_words = name_ + ": the decoder found errors in a frame and made up for them";
  }
  if (!frame.planar && !frame.pixels) {
    frame.dropped = DropCause::kUndecodable;
    frame.fault = "damaged";
    frame.fault_words = name_ + ": no pixels can be made of a frame";
  }
  frame.decode_time = spent + ThreadCpuTime() - before;
  ready_.push_back(std::move(frame));
}

// The packet that a frame comes from; nullopt for one of before the decoder began anew.
std::optional<LibavDecoder::Sent> LibavDecoder::OriginOf(int64_t number) {
  if (const auto found = sent_.find(number); found != sent_.end()) {
    const Sent sent = found->second;
    sent_.erase(found);
    first_given_ = first_given_.value_or(number);
    last_given_ = std::max(number, last_given_.value_or(number));
    last_origin_ = sent.origin;
    return sent;
  }
  if (!first_given_ || number < *first_given_) return std::nullopt;
  return Sent{.origin = last_origin_};  // a second frame of one packet
}

void LibavDecoder::Receive(Duration spent) {
  while (true) {
    const Duration before = ThreadCpuTime();
    const int error = av_.avcodec_receive_frame(decoder_, frame_);
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) break;
    if (error < 0) {  // a picture less; the library goes on behind it
      if (++errors_ > kMostErrors) break;
      continue;
    }
    errors_ = 0;
    spent += ThreadCpuTime() - before;
    const auto sent = OriginOf(frame_->reordered_opaque);
    if (!sent || sent->discarded || (frame_->flags & AV_FRAME_FLAG_DISCARD) != 0) continue;
    Emit(sent->origin, std::exchange(spent, {}));
  }
  ForgetSwallowed();
}

void LibavDecoder::Decode(const AVPacket* packet) {
  const Duration before = ThreadCpuTime();
  const int error = av_.avcodec_send_packet(decoder_, packet);
  Receive(ThreadCpuTime() - before);
  if (error >= 0 || error == AVERROR_EOF) return;
  const auto last = sent_.find(count_ - 1);
  if (last == sent_.end()) return;
  if (!last->second.discarded) {
    ready_.push_back({.arrived = last->second.origin.arrived,
                      .dropped = DropCause::kUndecodable,
                      .fault = "damaged",
                      .fault_words = fmt::format("{}: {}", name_, av_.Words(error))});
  }
  sent_.erase(last);
}

void LibavDecoder::Take(const AVPacket& packet, const PacketOrigin& origin) {
  last_arrived_ = origin.arrived;
  const bool discarded = (packet.flags & AV_PKT_FLAG_DISCARD) != 0;
  const auto skip = SkipOf(packet, origin);
  if (skip) {
    if (!discarded) ready_.push_back({.arrived = origin.arrived, .dropped = *skip});
    return;
  }
  decoder_->reordered_opaque = count_;
  sent_[count_++] = {.origin = origin, .discarded = discarded};
  Decode(&packet);
  // A stream whose packets never become frames must not fill the memory.
  constexpr size_t kMostHeld = 64;
  if (sent_.size() > kMostHeld) Unanswered(DropCause::kUndecodable);
}

void LibavDecoder::Finish() {
  if (decoder_ == nullptr) return;
  Decode(nullptr);
  if (first_given_) last_given_ = count_ + 64;
  ForgetSwallowed();
  Unanswered(DropCause::kUndecodable);
}

void LibavDecoder::Leave() { Unanswered(DropCause::kStopped); }

}  // namespace weir::watch

#endif
