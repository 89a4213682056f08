// When memory that messages have left behind goes back to the system.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace weir::http {

// The allocator keeps what was freed. Giving it back takes milliseconds, so it is done after much has been
// received, and once nothing is going on. Pure policy; not thread-safe.
class MemoryRelease {
 public:
  // `held`: bytes of messages in memory now; `received`: bytes that came since the last call. Returns true
  // when the caller should give memory back now.
  bool IsDue(uint64_t held, uint64_t received, Instant now);
  // There is memory to give back: the caller should ask again though nothing happens.
  bool pending() const { return received_ >= kMuch; }

 private:
  static constexpr uint64_t kMuch = uint64_t{64} << 20;  // received since the last release
  static constexpr uint64_t kLittle = uint64_t{1} << 20;
  static constexpr Duration kQuiet = 1s;

  uint64_t received_ = 0;  // since the last release
  std::optional<Instant> quiet_since_;
};

}  // namespace weir::http
