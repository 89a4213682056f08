// Where frames come from: a camera, a server, a file, or this program.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "image/decode.h"
#include "image/planar.h"
#include "watch/frame.h"
#include "watch/stream_spec.h"

namespace weir::watch {

// A frame as it came from a source. It has a JPEG; or planes or pixels where the source decodes; or none of
// them if the source dropped it.
struct SourceFrame {
  Bytes jpeg;
  std::shared_ptr<const image::PlanarPixels> planar;  // owns the decoder's memory
  std::shared_ptr<const image::Pixels> pixels;
  Duration decode_time{};  // that the source took for `planar` or `pixels`
  Instant arrived{};
  // When it was captured, as far as the source knows: on this host's monotonic clock, or as wall time.
  std::optional<Instant> captured;
  std::optional<Duration> captured_wall;
  CaptureSource capture_source = CaptureSource::kArrival;
  int64_t lost_before = 0;    // frames that the source knows to be missing before this one
  int width = 0, height = 0;  // of the coded picture, where the source decodes
  std::optional<DropCause> dropped;
  std::string fault, fault_words;  // a fault of the stream that came with it; empty: none
  int64_t fault_count = 1;         // how often
};

struct SourceOptions {
  Duration connect_timeout = 5s;
  Duration stall_timeout = 5s;                // without a frame: the connection is given up
  int64_t max_pixels = int64_t{8192} * 8192;  // declared by a header; more is refused
  size_t max_frame_bytes = size_t{32} << 20;
  bool skip_non_reference = false, skip_to_key = false;  // policies of streams whose frames need each other
  Duration deadline = 100ms;
  // How much smaller pixels may be (1, 2, 4, 8) than a frame of this width and height; empty: not at all.
  std::function<int(int, int)> shrink_for;
};

// One thread at a time.
class Source {
 public:
  virtual ~Source() = default;
  // Connects, again after an error of Read. It gives up at `until`. kUnsupported and kInvalidArgument are for
  // good: no later attempt can succeed.
  virtual Status Connect(Instant until) = 0;
  // The next frame; nullopt at the stream's regular end. kDeadline: none came until `until`. Any other error
  // ends the connection.
  virtual Result<std::optional<SourceFrame>> Read(Instant until) = 0;
  // Leaves the stream for good. Returns the frames that had arrived and were not read, each dropped.
  virtual std::deque<SourceFrame> Leave() { return {}; }
  // Frames that a made stream has captured so far; nullopt for streams of others.
  virtual std::optional<int64_t> produced() const { return std::nullopt; }
};

// Makes the source of `spec`. kUnsupported where this build or machine lacks the library. `clock` must
// outlive it.
Result<std::unique_ptr<Source>> MakeSource(const StreamSpec& spec, const SourceOptions& options,
                                           const Clock& clock);

}  // namespace weir::watch
