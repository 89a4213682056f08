#include "watch/file_pace.h"

#include <algorithm>

namespace weir::watch {

// The limits of ffmpeg: -dts_delta_threshold and -dts_error_threshold.
bool FilePace::Jumps(double stamp_s) const {
  constexpr double kMostJump = 10, kMostGap = 30 * 3600, kMostBack = 1;
  const double ahead = stamp_s - *base_s_ - (due_s_ + length_s_);
  if (stamps_ == Stamps::kMayJump) return ahead > kMostJump || ahead < -kMostJump;
  return ahead > kMostGap || ahead < -(kMostBack + length_s_);
}

FilePace::Due FilePace::Next(const Packet& packet) {
  const std::optional<double> stamp = packet.decoded_s ? packet.decoded_s : packet.shown_s;
  const double next = begun_ ? due_s_ + length_s_ : 0;
  if (!stamp) {
    due_s_ = next;
  } else {
    if (!base_s_ || Jumps(*stamp)) base_s_ = *stamp - next;
    due_s_ = std::max(due_s_, *stamp - *base_s_);
  }
  begun_ = true;
  length_s_ = packet.length_s;
  Due due{.read = FromSeconds(due_s_), .shown = FromSeconds(due_s_)};
  constexpr double kMostAhead = 3600;
  if (packet.decoded_s && packet.shown_s) {
    const double ahead = *packet.shown_s - *packet.decoded_s;
    if (ahead > 0 && ahead < kMostAhead) due.shown += FromSeconds(ahead);
  }
  return due;
}

}  // namespace weir::watch
