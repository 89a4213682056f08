// Coded packets of one video stream to frames, through libav. For the .cc files of this module.
#pragma once

#include "watch/libav.h"

#ifdef WEIR_HAS_LIBAV
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "watch/picture_turn.h"
#include "watch/source.h"

namespace weir::watch {

// Times of a packet, beside its bytes.
struct PacketOrigin {
  Instant arrived{};
  std::optional<Instant> captured;  // of its frame; a file's frame may be shown later than its packet is read
  std::optional<Duration> captured_wall;
  CaptureSource source = CaptureSource::kArrival;
};

// The packets that it takes become frames in `ready`: decoded, dropped by the policy, or undecodable. A
// packet may hold no frame of its own (the second field of a picture, a picture that is never shown), or two.
// One thread at a time.
class LibavDecoder {
 public:
  // All must outlive it. `name`: of the stream, in errors.
  LibavDecoder(const Libav& av, std::string name, const SourceOptions& options,
               std::deque<SourceFrame>& ready);
  ~LibavDecoder();

  // Opens anew; packets that a decoder still held are undecodable. kUnsupported where there is no decoder,
  // kOverloaded for more pixels than the limit. `turn`: of pictures that carry no other; nullopt: an angle
  // that is not a right one.
  Status Open(const AVCodecParameters& codec, std::optional<image::Turn> turn = image::Turn{});
  // A packet that is marked to be discarded is decoded, and becomes no frame.
  void Take(const AVPacket& packet, const PacketOrigin& origin);
  // The stream is over: gives what the decoder still holds.
  void Finish();
  // Drops what the decoder still holds as kStopped.
  void Leave();

 private:
  std::optional<DropCause> SkipOf(const AVPacket& packet, const PacketOrigin& origin);
  struct Sent {
    PacketOrigin origin;
    bool discarded = false;
  };
  void Decode(const AVPacket* packet);
  void Receive(Duration spent);
  std::optional<Sent> OriginOf(int64_t number);
  void Emit(const PacketOrigin& origin, Duration spent);
  void TakePicture(SourceFrame& frame);
  std::shared_ptr<const image::PlanarPixels> TakePlanes();
  std::shared_ptr<const image::Pixels> ToPixels();
  void SetColours();
  void Unanswered(DropCause cause);
  void ForgetSwallowed();
  void Close();

  const Libav& av_;
  const std::string name_;
  const SourceOptions& options_;
  std::deque<SourceFrame>& ready_;
  AVFrame* frame_;
  AVCodecContext* decoder_ = nullptr;
  SwsContext* scaler_ = nullptr;
  int length_size_ = 0;  // bytes of each NAL's length; 0: start codes
  std::optional<image::Turn> turn_;
  bool skipping_to_key_ = false;
  int errors_ = 0;  // of the decoder, since its last frame
  int64_t count_ = 0;
  Instant last_arrived_{};        // of the newest packet
  std::map<int64_t, Sent> sent_;  // packets whose frame has not come
  // The first and the last packet that gave a frame since the decoder began anew; the last one's origin.
  std::optional<int64_t> first_given_, last_given_;
  PacketOrigin last_origin_;
};

// Returns whether other frames may need this packet of H.264: its first slice says so in nal_ref_idc (H.264,
// 7.3.1). `length_size`: bytes of each NAL's length; 0: start codes.
bool IsReference(const uint8_t* data, size_t size, int length_size);

}  // namespace weir::watch

#endif
