// Refused connections and requests, as log lines at a rate that a person can read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "serve/log.h"

namespace weir::serve {

// Writes the first refusal of each kind at once, and then at most one line every ten seconds, with the number
// of refusals since the last line. Thread-safe.
class RefusalLog {
 public:
  RefusalLog(const Clock& clock, Log log) : clock_(clock), log_(std::move(log)) {}

  // `kind` is one of a closed list. `what` says what was refused, why, and which flag changes it.
  void Tell(std::string_view kind, const std::string& what);

 private:
  struct Kind {
    std::optional<Instant> written;  // the last line
    int64_t since = 0;               // refusals after it
  };

  const Clock& clock_;
  const Log log_;
  Mutex mutex_;
  std::map<std::string, Kind, std::less<>> kinds_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
