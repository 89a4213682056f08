// What a server refused before it looked at it, as log lines at a rate that can be read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "serve/log.h"
#include "serve/metrics.h"

namespace weir::serve {

// Writes the first refusal of each kind at once, and then one line every ten seconds at most, with the number
// of those since the last line. Thread-safe.
class RefusalLog {
 public:
  RefusalLog(const Clock& clock, Log log) : clock_(clock), log_(std::move(log)) {}

  // `what` says what was refused, why, and which flag changes it.
  void Tell(DoorRefusal kind, const std::string& what);

 private:
  struct Kind {
    std::optional<Instant> written;  // the last line
    int64_t since = 0;               // refusals after it
  };

  const Clock& clock_;
  const Log log_;
  Mutex mutex_;
  std::array<Kind, 8> kinds_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
