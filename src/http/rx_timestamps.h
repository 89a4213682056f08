// When bytes came to this host. A thread that slept until they did is woken 0.1 to 0.3 ms late on an idle
// core of a virtual machine; the kernel's stamp of a packet knows nothing of that.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/clock.h"

namespace weir::http {

// Moments of the wall clock, in which the kernel stamps, as moments of the monotonic one. Pure; one thread.
class WallClockConverter {
 public:
  // Once this long: the clocks are compared again.
  static constexpr Duration kFresh = 1ms;

  // Two readings of an unstepped clock differ by less.
  static constexpr Duration kStep = 20us;

  bool IsFresh(Instant now) const { return compared_ && now - *compared_ < kFresh; }
  // Both were read at the same moment.
  void Compare(Duration wall, Instant now);
  // Returns the moment of an event that was seen at `now`. Nullopt if a step of the wall clock was found
  // after `since`. REQUIRES: compared once.
  std::optional<Instant> At(Duration stamp, Instant since, Instant now) const;

 private:
  Duration ahead_{};  // the wall clock, of the monotonic one
  std::optional<Instant> compared_, stepped_;
};

// Receive timestamps for the sockets of one thread.
class RxTimestamps {
 public:
  explicit RxTimestamps(const Clock& clock) : clock_(clock) {}

  // Once for each socket, as soon as it is open.
  static void Stamp(int fd);

  struct Received {
    ssize_t size = 0;         // 0: the other side has closed; below 0: -errno
    Instant came;             // the last byte of these; now where the kernel does not tell
    bool is_early = false;    // it came before `since`, which `came` never does
    bool is_surplus = false;  // more came than fitted; a byte of it is lost
  };
  enum class Behind { kFollows, kIsSurplus };  // what may come behind `buffer`
  // Receives without waiting the bytes that fit into `buffer`. Their request was sent at `since`.
  Received Receive(int fd, std::span<std::byte> buffer, Behind behind, Instant since);

 private:
  void CompareClocks();

  const Clock& clock_;
  WallClockConverter moments_;
};

}  // namespace weir::http
