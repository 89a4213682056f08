#include "watch/frame.h"

namespace weir::watch {

std::string_view ToString(CaptureSource source) {
  switch (source) {
    case CaptureSource::kBurntIn:
      return "burnt-in-code";
    case CaptureSource::kSenderReport:
      return "rtcp-sender-report";
    case CaptureSource::kPartTimestamp:
      return "mjpeg-timestamp";
    case CaptureSource::kPacketTime:
      return "packet-timestamp";
    case CaptureSource::kDriver:
      return "driver-timestamp";
    case CaptureSource::kFileTime:
      return "file-timestamp";
    case CaptureSource::kArrival:
      return "arrival";
  }
  return "";
}

std::string_view ToString(DropCause cause) {
  switch (cause) {
    case DropCause::kLost:
      return "lost";
    case DropCause::kOutOfOrder:
      return "out-of-order";
    case DropCause::kRepeated:
      return "repeated";
    case DropCause::kNonReference:
      return "non-reference";
    case DropCause::kToKeyFrame:
      return "to-key-frame";
    case DropCause::kUndecodable:
      return "undecodable";
    case DropCause::kSuperseded:
      return "superseded";
    case DropCause::kLate:
      return "late";
    case DropCause::kExpired:
      return "expired";
    case DropCause::kRefused:
      return "refused";
    case DropCause::kFailed:
      return "failed";
    case DropCause::kStopped:
      return "stopped";
  }
  return "";
}

std::string_view ToString(Stage stage) {
  switch (stage) {
    case Stage::kTransport:
      return "transport";
    case Stage::kWait:
      return "wait";
    case Stage::kDecode:
      return "decode";
    case Stage::kDetect:
      return "detect";
    case Stage::kInfer:
      return "infer";
    case Stage::kIdentify:
      return "identify";
  }
  return "";
}

std::array<std::optional<Duration>, kStages> StageTimes(const FrameTimes& times) {
  std::array<std::optional<Duration>, kStages> stages;
  const std::optional<Instant> ends[kStages] = {times.arrived,  times.taken,    times.decoded,
                                                times.detected, times.inferred, times.done};
  Instant before = times.capture;
  for (int i = 0; i < kStages; ++i) {
    if (!ends[i]) continue;
    stages[static_cast<size_t>(i)] = *ends[i] - before;
    before = *ends[i];
  }
  return stages;
}

}  // namespace weir::watch
