#include "http/memory_release.h"

namespace weir::http {

bool MemoryRelease::IsDue(uint64_t held, uint64_t received, Instant now) {
  received_ += received;
  if (!pending() || held > kLittle || received > kLittle) {
    quiet_since_.reset();
    return false;
  }
  if (!quiet_since_) quiet_since_ = now;
  if (now - *quiet_since_ < kQuiet) return false;
  received_ = 0;
  quiet_since_.reset();
  return true;
}

}  // namespace weir::http
