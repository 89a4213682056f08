// Failures of requests, told to a person at a rate that can be read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "serve/log.h"

namespace weir::serve {

// Logs the first few errors of each kind in every ten seconds, each message once. The others are
// counted, and their number is told when the ten seconds are over. Thread-safe.
class FailureLog {
 public:
  FailureLog(const Clock& clock, Log log) : clock_(clock), log_(std::move(log)) {}

  // `request_id` is the client's; empty: it gave none. Both may be of any length.
  void Tell(const Error& error, const std::string& request_id);
  // Tells the numbers that are due. To be called every few seconds.
  void TellCounts();
  const Log& log() const { return log_; }

 private:
  struct Kind {
    std::optional<Instant> since;  // when the ten seconds began
    std::vector<size_t> told;      // hashes of the messages
    int64_t untold = 0;
  };
  // Begins new ten seconds where the last are over, and returns the line about those.
  static std::string Renew(ErrorCode code, Kind& kind, Instant now);

  const Clock& clock_;
  const Log log_;
  Mutex mutex_;
  std::array<Kind, 9> kinds_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
