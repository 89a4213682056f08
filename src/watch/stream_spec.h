// The streams of a command line, as text to values. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace weir::watch {

// A stream that the program draws itself: planted persons that move over a background, with a code burnt in
// (frame_code.h). Moments count from its first frame.
struct MadeSpec {
  struct Span {
    Duration at{}, length{};
  };
  struct Resize {
    Duration at{};
    int width = 0, height = 0;
  };
  enum class Codec { kMjpeg, kH264 };
  Codec codec = Codec::kMjpeg;
  int gop = 0;      // H.264: frames from one key frame to the next; 0: those of 2 s
  int bframes = 0;  // H.264: frames that no other needs, after each one that others need; each delays by one
  int width = 640, height = 480;
  double fps = 10;
  int persons = 2;
  uint64_t seed = 1;
  int64_t frames = 0;  // 0: no end
  int quality = 80;    // of its coding, 20 to 100
  Duration delay{};    // from capture to delivery
  // Faults.
  double loss = 0, reorder = 0, damage = 0;  // probabilities of a frame
  std::optional<Span> freeze;                // the same picture again and again
  std::optional<Span> stall;                 // nothing is delivered
  std::optional<Span> step;                  // its clock jumps by `length`, which may be negative
  std::optional<Resize> resize;
  std::optional<Duration> cut;  // the connection ends once
};

// A camera of this host: its wishes, which the driver may change.
struct CameraSpec {
  int width = 640, height = 480;
  double fps = 0;  // 0: the driver's own
};

enum class StreamKind { kMade, kMjpegHttp, kFile, kRtsp, kCamera };

struct StreamSpec {
  StreamKind kind = StreamKind::kMade;
  std::string text;  // as given
  std::string name;  // for people and results: `text` without passwords
  std::string path;  // of a file or a device
  MadeSpec made;
  CameraSpec camera;
};

// Reads "made:fps=10,...", "http://...", "rtsp://...", "/dev/videoN", "v4l2:PATH,fps=10,...", or a file's
// path. kInvalidArgument
// names the stream and what is wrong with it.
Result<StreamSpec> ParseStream(const std::string& text);

}  // namespace weir::watch
