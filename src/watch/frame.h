// A frame's account: when it was captured, by which clock, how it went through the stages, and its one fate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace weir::watch {

// The origin of a frame's capture time. It is reported with every latency.
enum class CaptureSource {
  kBurntIn,        // read from the code in the picture
  kSenderReport,   // RTP time, mapped to the sender's wall clock by its RTCP reports
  kPartTimestamp,  // the X-Timestamp of an MJPEG part
  kPacketTime,     // sent beside the coded frame by a made stream
  kDriver,         // the driver of a camera of this host, on the monotonic clock
  kFileTime,       // the file's own time stamps, played at their pace
  kArrival,        // nothing better is known: the latency leaves out the way to this host
};
std::string_view ToString(CaptureSource source);  // "burnt-in-code", "rtcp-sender-report", ...

// The reasons why a captured frame was not answered. The list is closed; watch.json publishes it.
enum class DropCause {
  kLost,          // a gap in the counters of the stream: it never arrived
  kOutOfOrder,    // a later frame of the stream came first
  kRepeated,      // the same picture came again
  kNonReference,  // skipped before decoding: no other frame needs it, and the stream is behind
  kToKeyFrame,    // skipped before decoding: the stream is a deadline behind, up to the next key frame
  kUndecodable,   // the decoder gave no picture of it
  kSuperseded,    // a newer frame of its stream took its place
  kLate,          // its deadline had passed when it was ready for inference
  kExpired,       // it could no longer be answered in time
  kRefused,       // the queue of the model or of the server was full
  kFailed,        // the model or the server gave an error
  kStopped,       // the program ended first
};
inline constexpr int kDropCauses = 12;
std::string_view ToString(DropCause cause);  // "lost", "out-of-order", ...

// The stages of a frame, each from its end back to the end of the one before it.
enum class Stage {
  kTransport,  // from capture until the coded frame was here
  kWait,       // until a decoder took it
  kDecode,     // decoding and scaling
  kDetect,     // the detection model, with its queue
  kInfer,      // the embedding or classification, with its queue
  kIdentify,   // the look-up
};
inline constexpr int kStages = 6;
std::string_view ToString(Stage stage);  // "transport", "wait", ...

// Moments on this host's monotonic clock; unset if the frame did not get so far.
struct FrameTimes {
  Instant capture{}, arrived{};
  std::optional<Instant> taken, decoded, detected, inferred, done;
};

// The time of each stage that the frame went through.
std::array<std::optional<Duration>, kStages> StageTimes(const FrameTimes& times);

// One frame's record. A frame without `dropped` was answered.
struct FrameRecord {
  int stream = 0;
  int64_t sequence = 0;             // from 0 in the order of arrival; -1 for a frame that never arrived
  std::optional<uint32_t> counter;  // the stream's own, where it burns one in
  CaptureSource capture_source = CaptureSource::kArrival;
  FrameTimes times;
  std::optional<DropCause> dropped;
};

}  // namespace weir::watch
