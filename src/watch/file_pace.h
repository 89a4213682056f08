// When each packet of a file is due, as `ffmpeg -re` plays it. Pure: no clock.
#pragma once

#include <optional>

#include "base/clock.h"

namespace weir::watch {

// One thread at a time.
class FilePace {
 public:
  // Whether time stamps of the file's format may jump, as those of a recorded broadcast (MPEG-TS) do.
  enum class Stamps { kContinuous, kMayJump };
  explicit FilePace(Stamps stamps = Stamps::kContinuous) : stamps_(stamps) {}

  struct Packet {
    std::optional<double> decoded_s, shown_s;  // its time stamps
    double length_s = 0;                       // by the file, else by its rate; above 0
  };
  struct Due {
    Duration read{};   // from the first packet
    Duration shown{};  // not before `read`; a frame that others are made of is read before it is shown
  };
  // A packet without a time stamp is due when the one before it is over. Where stamps go back, or jump
  // further than the format allows, the packet follows the one before it.
  Due Next(const Packet& packet);

 private:
  bool Jumps(double stamp_s) const;

  Stamps stamps_;
  std::optional<double> base_s_;  // the stamp that is due at 0
  double due_s_ = 0, length_s_ = 0;
  bool begun_ = false;
};

}  // namespace weir::watch
