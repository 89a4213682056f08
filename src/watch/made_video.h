// The coding of a made stream: pictures to packets at the camera, packets to frames at this end.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "watch/source.h"
#include "watch/stream_spec.h"

namespace weir::watch {

struct MadePicture {
  int phase = 0;  // of the loop
  uint32_t counter = 0;
  Duration wall{};  // when it was captured, by the sender's clock
};
struct MadePacket {
  Bytes data;
  MadePicture of;
  bool key = false;
};

// One thread at a time.
class MadeVideo {
 public:
  virtual ~MadeVideo() = default;
  // The pictures have another size from the next one on. Call it before the first one.
  virtual Status Resize(int width, int height) = 0;
  // Draws and encodes the picture. Returns the packet that is ready, which may be of an earlier picture;
  // nullopt if the encoder holds the picture back.
  virtual Result<std::optional<MadePacket>> Encode(const MadePicture& picture) = 0;
  // Returns one packet that the encoder still holds, after the last picture; nullopt after the last packet.
  virtual Result<std::optional<MadePacket>> Rest() = 0;
  // The packet has arrived: adds the frames that it gives.
  virtual void Deliver(const MadePacket& packet, Instant arrived, std::deque<SourceFrame>& ready) = 0;
  // The connection was made again: adds the frames that will never come of packets delivered before.
  virtual Status Reconnect(std::deque<SourceFrame>& ready) = 0;
  // The last packet was delivered: adds the frames that this end still holds.
  virtual void End(std::deque<SourceFrame>& ready) = 0;
  // The stream is left: adds those frames, dropped as kStopped.
  virtual void Leave(std::deque<SourceFrame>& ready) = 0;
};

std::unique_ptr<MadeVideo> MakeMadeJpegs(const MadeSpec& spec);
// kUnsupported where the build or the machine lacks libav or its H.264 encoder. `options` must outlive it.
Result<std::unique_ptr<MadeVideo>> MakeMadeH264(const MadeSpec& spec, const SourceOptions& options);

}  // namespace weir::watch
